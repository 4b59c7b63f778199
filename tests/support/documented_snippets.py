"""What surrounds each Python snippet of the documentation when a test runs it.

The snippets themselves are read from the published text. Here stands what a reader has to bring
along: the names that a fragment takes for granted, the files that it names, and a look at what it
did. A snippet is known by its page and its number there, and by a digest of its text: when the
text changes, somebody must look at its entry again.
"""

from __future__ import annotations

from dataclasses import dataclass

CLIENT = """
from prime_sandboxes import *
client = SandboxClient(APIClient())
"""
SANDBOX = """
sandbox = client.create(CreateSandboxRequest(name="docs", docker_image="python:3.11-slim"))
client.wait_for_creation(sandbox.id)
"""
DELETE = """
client.delete(sandbox.id)
"""
DELETE_ALL = """
left = client.list(exclude_terminated=True).sandboxes
assert not client.bulk_delete([each.id for each in left]).failed
"""
# The reader's program is in his image: here it comes as soon as the sandbox is ready. And his
# half minute is short.
TRAINING = """
import time
from pathlib import Path

class Client(SandboxClient):
    def wait_for_creation(self, sandbox_id):
        super().wait_for_creation(sandbox_id)
        program = b"print('trained'); open('/app/model.pt', 'wb').write(b'weights')"
        where = self.execute_command(sandbox_id, "mkdir /app; pwd").stdout.strip()
        self.upload_bytes(sandbox_id, f"{where}/train.py", program, "train.py")

client = Client(APIClient())
pause = time.sleep
time.sleep = lambda seconds: pause(seconds / 300)
"""
TRAINED = """
assert Path("model.pt").read_bytes() == b"weights"
"""
LOCAL_FILES = """
from pathlib import Path
Path("artifacts").mkdir()
Path("artifacts/model.bin").write_bytes(bytes(range(256)))
made = client.execute_command(sandbox.id, "mkdir -p /workspace && echo a,b > /workspace/report.csv")
assert made.exit_code == 0, made
"""
MOVED_FILES = """
assert Path("reports/report.csv").read_text() == "a,b\\n"
there = client.execute_command(sandbox.id, "wc -c < /workspace/model.bin")
assert there.stdout.strip() == "256", there
"""
NETWORK = """
network = client.create_lan_network("demo")
"""
DELETE_NETWORK = """
client.delete_lan_network(network.id)
"""
MEMBERS = """
for name in ("web", "db"):
    made = client.create(CreateSandboxRequest(name=name, docker_image="python:3.11-slim"))
    client.wait_for_creation(made.id)
"""
SEE_MEMBERS = """
members = client.get_lan_network(network.id).members
assert {each.sandbox_id: each.tags for each in members} == {
    "<web-sandbox-id>": ["web"], "<db-sandbox-id>": ["db"]
}
"""
# What a producer emits: a trace that went well, as an object and as the line of a file.
PRODUCED = """
import json, time
from pathlib import Path
from prime_traces import NotFoundError, TracesClient

class Trace(dict):
    def to_record(self):
        return dict(self)

trace = Trace(
    id="your-trace-id",
    run={"id": "your-run-id", "type": "eval"},
    timing={"start": time.time()},
    nodes=[{"message": {"role": "tool", "content": "Traceback (most recent call last)"}}],
    rewards={"right": {"score": 1.0}},
    stop_condition="done",
    ok=True,
)
episode = Trace(id="your-episode-id", env={"id": "ladders"}, ok=True, traces=[])

def found():
    with TracesClient() as client:
        return [each.trace_id for each in client.iter()]
"""
STORED = (
    PRODUCED
    + """
with TracesClient() as client:
    client.upload_records([trace])
"""
)
GONE = """
assert found() == []
"""

INFERENCE = """
from prime_inference import InferenceClient
client = InferenceClient()
"""
OPENAI = """
from prime_inference import openai_client
client = openai_client()
"""
# The reader's client goes to the service that it names; here it goes to the local platform.
OPENAI_HERE = """
import openai, os

class Client(openai.OpenAI):
    def __init__(self, *, base_url, **options):
        assert base_url == "https://api.pinference.ai/api/v1"
        super().__init__(base_url=os.environ["PRIME_INFERENCE_URL"], **options)

openai.OpenAI = Client
"""


@dataclass(frozen=True)
class Snippet:
    """How to run one snippet.

    Args:
        digest: the first 12 hexadecimal digits of its SHA-256.
        before: runs before it in the same namespace.
        after: runs after it; it looks at what was done, and deletes what the snippet leaves.
        prints: a regular expression for all that is printed.
        example_ids: ids that the snippet names, given to the sandboxes created first.
        own_files: it uses absolute paths, so its sandbox needs a file system of its own.
    """

    digest: str
    before: str = ""
    after: str = ""
    prints: str = ""
    example_ids: tuple[str, ...] = ()
    own_files: bool = False


SNIPPETS = {
    "sandboxes/checkpoints 1": Snippet(
        "06517d63bc7a",
        CLIENT + SANDBOX + "sandbox_id = sandbox.id\n"
        "client.execute_command(sandbox_id, 'echo saved > note')\n",
        "assert client.execute_command(restored.id, 'cat note').stdout == 'saved\\n'\n"
        + DELETE_ALL
        + "client.delete_checkpoint(checkpoint.id)\n",
    ),
    "sandboxes/commands 1": Snippet("701fa5bc0ff7", CLIENT + SANDBOX, DELETE, r"42\n  0\n"),
    "sandboxes/commands 2": Snippet(
        "caf210f3e3e6", CLIENT + TRAINING, TRAINED, r"0 trained\n\n", own_files=True
    ),
    "sandboxes/files 1": Snippet(
        "6bedba056e4d",
        CLIENT + SANDBOX + LOCAL_FILES,
        MOVED_FILES + DELETE,
        r"a,b\n\n",
        own_files=True,
    ),
    "sandboxes/lifecycle 1": Snippet(
        "9122b0939ddb",
        CLIENT,
        "made = client.get(sandbox.id)\n"
        "assert (made.cpu_cores, made.memory_gb, made.disk_size_gb) == (2, 4, 20)\n"
        "assert (made.name, made.timeout_minutes) == ('analytics-lab', 240)\n" + DELETE,
    ),
    "sandboxes/lifecycle 2": Snippet(
        "6611295bd8d3",
        CLIENT,
        "assert client.get(sandbox.id).start_command.args[0] == 'serve.py'\n" + DELETE,
    ),
    "sandboxes/lifecycle 3": Snippet(
        "90e864641dfe",
        CLIENT,
        "assert (sandbox.timeout_minutes, sandbox.idle_timeout_minutes) == (-1, 15)\n" + DELETE,
    ),
    "sandboxes/lifecycle 4": Snippet(
        "4cfe8177610a",
        CLIENT,
        "found = client.list(labels=['experiment', 'ml-pipeline']).sandboxes\n"
        "assert [each.id for each in found] == [sandbox.id]\n" + DELETE,
    ),
    "sandboxes/lifecycle 5": Snippet(
        "182c0bf54ce9",
        CLIENT + "for labels in ([], [], [], ['experiment', 'staging', 'more']):\n"
        "    client.create(CreateSandboxRequest(\n"
        "        name='mine', docker_image='python:3.11-slim', labels=labels))\n",
        prints=r"Deleted: \['sbx_\w{20}'\], Failed: \[\]\n",
        example_ids=("sbx_123", "sbx_456", "sbx_789"),
    ),
    "sandboxes/network-isolation 1": Snippet("ec3ab21b424e", CLIENT),
    "sandboxes/networks 1": Snippet(
        "c45c8835051b",
        CLIENT + MEMBERS,
        SEE_MEMBERS + DELETE_ALL + DELETE_NETWORK,
        example_ids=("<web-sandbox-id>", "<db-sandbox-id>"),
    ),
    "sandboxes/networks 2": Snippet(
        "f04032424b09",
        CLIENT + NETWORK,
        "rule, = client.get_lan_network(network.id).rules\n"
        "assert (rule.from_, rule.to, rule.ports) == ('tag:web', 'tag:db', [5432, 6379])\n"
        + DELETE_NETWORK,
    ),
    "sandboxes/networks 3": Snippet(
        "7bb7f7a46c60",
        CLIENT + NETWORK,
        "rule, = client.get_lan_network(network.id).rules\n"
        "assert (rule.from_, rule.to, rule.ports) == ('internet', 'tag:web', [8080])\n"
        + DELETE_NETWORK,
    ),
    "sandboxes/networks 4": Snippet(
        "b0815570fa71",
        CLIENT + SANDBOX + NETWORK + "client.add_lan_member(network.id, sandbox.id, tags=['a'])\n",
        "assert client.list_lan_networks() == []\n" + DELETE,
        r"\w+ demo (True|False)\n<sandbox-id> \['a'\] (True|False)\n",
        example_ids=("<sandbox-id>",),
    ),
    "sandboxes/overview 1": Snippet("8419d37161d9", prints=r"Python 3\.\d+\.\d+\n\n"),
    "sandboxes/sdk 1": Snippet("4679296f6d4e", prints=r"42\n\n"),
    "sandboxes/sdk 2": Snippet("fe90bbf1685f", prints=r"42\n"),
    "sandboxes/sdk 3": Snippet(
        "793d82b6d7fe",
        "import asyncio\nfrom prime_sandboxes import *\n",
        "await create_many(['python:3.11-slim', 'debian:12', 'python:3.12'])\n"
        "async with AsyncSandboxClient() as client:\n"
        "    made = (await client.list(exclude_terminated=True)).sandboxes\n"
        "    assert {each.status for each in made} == {'RUNNING'}, made\n"
        "    assert len((await client.bulk_delete([each.id for each in made])).succeeded) == 3\n",
        r"Ready: batch-1, batch-2, batch-3\n",
    ),
    "sandboxes/secrets 1": Snippet(
        "dc61e15206a9",
        CLIENT,
        "client.wait_for_creation(sandbox.id)\n"
        "seen = client.execute_command(sandbox.id, 'echo $APP_ENV $DB_PASSWORD').stdout\n"
        "assert seen == 'staging hunter2\\n', seen\n" + DELETE,
    ),
    "sandboxes/volumes 1": Snippet(
        "546a37ef4c51",
        after=DELETE_ALL + "client.volumes.delete('my-data')\n",
        prints=r"hello\n\n",
        own_files=True,
    ),
    "sandboxes/volumes 2": Snippet(
        "0bee7f44bce0",
        CLIENT + "client.volumes.create('my-data')\n",
        "assert client.volumes.list().total == 0\n",
        r"\[Volume\(.*name='my-data'.*\)\] False\nNone\n",
    ),
    "traces/managing-traces 1": Snippet(
        "daec4c313fda",
        STORED,
        "assert json.loads(Path('trace.json').read_text()) == trace\n",
    ),
    "traces/managing-traces 2": Snippet("22a097a1a666", STORED, GONE),
    "traces/managing-traces 3": Snippet("136eda3a656b", STORED, GONE),
    "traces/overview 1": Snippet(
        "99a6901d1835",
        STORED,
        "assert json.loads(raw) == trace\n"
        "match, = matches.items\n"
        "assert (match.trace_id, match.match_start, match.role) == ('your-trace-id', 0, 'tool')\n",
        r"your-trace-id reward=1\.0 outcome='done'\n",
    ),
    "traces/uploading 1": Snippet(
        "59e10b51fd76",
        PRODUCED + "traces, episodes = [trace], [episode]\n",
        "assert [each.status for each in receipts + episode_receipts] == ['committed'] * 2\n"
        "with TracesClient() as client:\n"
        "    assert client.get('your-trace-id').context == {'source': 'my-eval'}\n"
        "    assert client.get_episode('your-episode-id').environment_id == 'ladders'\n",
    ),
    "traces/uploading 2": Snippet(
        "2b5ba6c3b857",
        PRODUCED + "Path('trace-records.jsonl').write_text(json.dumps(trace) + '\\n')\n",
        "assert len(receipts) == 1 and found() == ['your-trace-id']\n",
    ),
    "traces/uploading 3": Snippet(
        "2a367c2a4ffc",
        PRODUCED
        + "line = json.dumps({**episode, 'traces': [trace]})\n"
        + "Path('traces.jsonl').write_text(line + '\\n')\n",
        "assert len(receipts) == 1 and found() == ['your-trace-id']\n",
    ),
    "api-reference/inference-chat-completions 1": Snippet(
        "f29aa70304ca",
        INFERENCE,
        "assert stream.get_final_completion().choices[0].finish_reason\nclient.close()\n",
        r"(?s).+",
    ),
    "api-reference/inference-chat-completions 2": Snippet(
        "25ce58b23463",
        OPENAI,
        "assert response.usage.total_tokens > 0 and response.usage.cost > 0\nclient.close()\n",
        r"(?s)CompletionUsage\(.+cost=.+",
    ),
    "inference/overview 1": Snippet("4e8dd9eed772", OPENAI_HERE, "client.close()\n", r"(?s).+"),
}

# Pages whose package does not exist yet, by the name that it will be imported under.
NOT_YET = {"sandboxes/tunnel": "prime_tunnel"}
