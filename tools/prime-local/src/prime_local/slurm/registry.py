"""Every Slurm deployment, and what happens to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from prime_local.account.people import People
from prime_local.clock import PlatformClock
from prime_local.contract.document import JsonObject
from prime_local.errors import PlatformError
from prime_local.factory.cluster import GPUS, NODES, idle_nodes
from prime_local.identifiers import Identifiers
from prime_local.pods.pace import Pace, Steps
from prime_local.rows import from_row, to_row
from prime_local.slurm.record import RUNNING, Deployment
from prime_local.storage import Storage

KIND = "slurm"
DEFAULT_NODES = 2
# A deployment may have more only where it has more already.
MOST_NODES = 64
FIRST_UID = 1001
_USERNAME = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


class SlurmRegistry:
    """Every deployment, oldest first. One runs from the start.

    Args:
        clock: the platform's.
        identifiers: makes ids.
        storage: keeps them.
        people: the teams.
        pace: what a step of a deployment takes, and a resize to show.
    """

    def __init__(
        self,
        clock: PlatformClock,
        identifiers: Identifiers,
        storage: Storage,
        people: People,
        pace: Pace,
    ) -> None:
        self._clock = clock
        self._identifiers = identifiers
        self._storage = storage
        self._people = people
        self._pace = pace
        self._steps: dict[str, Steps] = {}
        digest = hashlib.sha256(people.lab.id.encode()).hexdigest()
        self.prime_cluster_id = f"pc_{digest[:12]}"
        first = self._first(f"slurm_{digest[:20]}")
        self._deployments = {first.id: first}

    def _first(self, deployment_id: str) -> Deployment:
        started = self._clock.date(-timedelta(hours=2).total_seconds())
        carol = next(each for each in self._people.lab.members if each.name == "Carol")
        member = {
            "username": "carol",
            "uid": FIRST_UID,
            "sshAuthorizedKeys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample carol"],
            "sudo": False,
            "status": "ACTIVE",
            "linkedUserId": carol.user_id,
            "linkedUserName": carol.name,
            "linkedUserEmail": carol.email,
        }
        return Deployment(
            id=deployment_id,
            team_id=self._people.lab.id,
            prime_cluster_id=self.prime_cluster_id,
            name="research-b300-slurm",
            nodes=idle_nodes(())[:6],
            gpu_count=6 * GPUS,
            job_nodes=2,
            members=[member],
            created_at=started - timedelta(minutes=5),
            started_at=started,
            stage=RUNNING,
        )

    def take_over(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Go on with the deployments of an earlier platform."""
        self._deployments |= {row["id"]: from_row(Deployment, row) for row in rows}
        for deployment in self._deployments.values():
            self._save(deployment)
            self._go_on(deployment)

    def of_team(self, team_id: str) -> list[Deployment]:
        """Return a team's deployments; looking at them may move them on."""
        return [each for each in self._deployments.values() if each.team_id == team_id]

    def read(self, deployment: Deployment) -> JsonObject:
        """Return the wire form to a caller, which may move the deployment on."""
        wire = deployment.to_wire()
        if deployment.id in self._steps:
            self._steps[deployment.id].read()
        return wire

    def get(self, job_id: str, team_id: str | None = None) -> Deployment:
        """Return a deployment of a team, or of any team of the caller's.

        Raises:
            PlatformError: 404.
        """
        found = self._deployments.get(job_id)
        if found is None or (team_id or found.team_id) != found.team_id:
            raise PlatformError(404, "Slurm cluster not found")
        return found

    def deploy(self, team_id: str, body: JsonObject) -> Deployment:
        """Claim nodes and begin.

        Args:
            team_id: whose it is.
            body: `primeClusterId`, `displayName` and `numNodes`, all optional.

        Raises:
            PlatformError: 400, 404 or 409.
        """
        cluster_id = body.get("primeClusterId", self.prime_cluster_id)
        if team_id != self._people.lab.id or cluster_id != self.prime_cluster_id:
            raise PlatformError(404, "Cluster not found")
        count = body.get("numNodes", DEFAULT_NODES)
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_NODES:
            raise PlatformError(400, f"numNodes must be 1 to {MOST_NODES}")
        nodes = self._claim(count)
        number = len(self._deployments) + 1
        deployment = Deployment(
            id=self._identifiers.make("slurm_"),
            team_id=team_id,
            prime_cluster_id=cluster_id,
            name=str(body.get("displayName", f"research-b300-slurm-{number}")),
            nodes=nodes,
            gpu_count=GPUS * count,
            job_nodes=max(1, count // 3),
            members=[],
            created_at=self._clock.date(),
        )
        self._deployments[deployment.id] = deployment
        self._save(deployment)
        return deployment

    def start(self, deployment: Deployment) -> None:
        """Let a new deployment go its way."""
        self._go_on(deployment)

    def resize(self, deployment: Deployment, target: int) -> JsonObject:
        """Claim or release nodes; the row shows it later.

        Raises:
            PlatformError: 400 or 409.
        """
        current = len(deployment.nodes)
        if target > max(MOST_NODES, current) or target > len(NODES):
            raise PlatformError(400, "Invalid target, or not enough capacity")
        if deployment.stage != RUNNING:
            raise PlatformError(409, "The cluster is not RUNNING")
        if not deployment.settled:
            raise PlatformError(409, "Another resize is running")
        added = self._claim(max(0, target - current))
        busy = deployment.busy_nodes(self._clock.date())
        spare = [node for node in reversed(deployment.nodes) if node not in busy]
        removed = spare[: max(0, current - target)]
        deployment.nodes = [node for node in deployment.nodes if node not in removed] + added
        deployment.job_nodes = min(deployment.job_nodes, len(deployment.nodes))
        self._save(deployment)
        self._go_on(deployment)
        return {"numNodes": len(deployment.nodes), "added": added, "removed": removed}

    def add_member(self, deployment: Deployment, body: JsonObject) -> JsonObject:
        """Make a Linux account.

        Raises:
            PlatformError: 400 or 409.
        """
        username, linked = body["username"], body.get("linkedUserId")
        if not _USERNAME.fullmatch(username):
            raise PlatformError(400, "Not a POSIX user name")
        if any(member["username"] == username for member in deployment.members):
            raise PlatformError(409, "A member of this name exists")
        team = self._people.team(deployment.team_id)
        user = next((each for each in team.members if each.user_id == linked), None)
        if linked is not None and user is None:
            raise PlatformError(400, "The linked user is not a member of the team")
        uids = [member["uid"] for member in deployment.members]
        member = {
            "username": username,
            "uid": max(uids, default=FIRST_UID - 1) + 1,
            "sshAuthorizedKeys": body["sshAuthorizedKeys"],
            "sudo": False,
            "status": "ACTIVE",
            "linkedUserId": linked,
            "linkedUserName": user and user.name,
            "linkedUserEmail": user and user.email,
        }
        deployment.members.append(member)
        self._save(deployment)
        return member

    def remove_member(self, deployment: Deployment, username: str) -> None:
        """End a Linux account.

        Raises:
            PlatformError: 404.
        """
        kept = [member for member in deployment.members if member["username"] != username]
        if len(kept) == len(deployment.members):
            raise PlatformError(404, "Member not found")
        deployment.members = kept
        self._save(deployment)

    def idle_nodes(self) -> list[str]:
        """Return the nodes that no deployment has."""
        return idle_nodes(node for each in self._deployments.values() for node in each.nodes)

    def clear(self) -> None:
        for steps in self._steps.values():
            steps.stop()
        self._steps.clear()
        self._deployments.clear()

    def _claim(self, count: int) -> list[str]:
        idle = self.idle_nodes()
        if len(idle) < count:
            raise PlatformError(409, "Not enough idle nodes")
        return idle[:count]

    def _go_on(self, deployment: Deployment) -> None:
        """Let a deployment take its next steps, until it runs and shows the nodes it has."""

        def done() -> bool:
            return deployment.stage == RUNNING and deployment.settled

        def take() -> bool:
            if deployment.stage < RUNNING:
                deployment.stage += 1
                if deployment.stage == RUNNING:
                    deployment.started_at = self._clock.date()
            else:
                deployment.gpu_count = GPUS * len(deployment.nodes)
            self._save(deployment)
            return not done()

        if not done():
            self._steps[deployment.id] = Steps(self._pace, take)
            self._steps[deployment.id].start()

    def _save(self, deployment: Deployment) -> None:
        self._storage.save_object(KIND, deployment.id, to_row(deployment))
