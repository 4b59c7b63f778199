"""Makes up offers: as many, as varied and as dear as the real ones, the same for a seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from prime_local.availability.offers import DiskOffer, GpuOffer, Place, Spec, Stock

GPU_OFFERS, MULTINODE_OFFERS = 2000, 120

_IMAGES = (
    "ubuntu_22_cuda_12",
    "cuda_12_1_pytorch_2_2",
    "cuda_11_8_pytorch_2_1",
    "cuda_12_4_pytorch_2_5",
    "cuda_12_4_pytorch_2_6",
    "cuda_12_6_pytorch_2_7",
    "stable_diffusion",
    "flux",
    "axolotl",
    "bittensor",
    "vllm_llama_8b",
    "vllm_llama_70b",
    "custom_template",
    "prime_rl",
)


@dataclass(frozen=True)
class _Provider:
    """Args:
    name: as the contract has it.
    factor: its prices against the usual ones, in percent.
    places: region, country and data centre of each.
    naming: its plan tokens, of a GPU's name and their number.
    disks: whether it rents out network disks.
    """

    name: str
    factor: int
    places: tuple[tuple[str, str, str], ...]
    naming: str = "{gpu}-x{count}"
    disks: bool = False
    adjustable: bool = False
    sparse: bool = False
    variable: bool = False
    currency: str = "USD"
    security: str = "secure_cloud"


_US, _CA, _EUN, _EUW, _EUE = "united_states", "canada", "eu_north", "eu_west", "eu_east"
_PROVIDERS = (
    _Provider(
        "hyperstack",
        96,
        ((_CA, "CA", "CANADA-1"), (_US, "US", "US-1"), (_EUN, "NO", "NORWAY-1")),
        "n3-{gpu}x{count}",
        disks=True,
        adjustable=True,
    ),
    _Provider(
        "runpod",
        104,
        (
            (_US, "US", "US-KS-2"),
            (_US, "US", "US-TX-3"),
            (_US, "US", "US-GA-1"),
            (_CA, "CA", "CA-MTL-1"),
            (_EUE, "RO", "EU-RO-1"),
            (_EUN, "SE", "EU-SE-1"),
            ("australia", "AU", "OC-AU-1"),
        ),
        "NVIDIA {gpu} {socket}",
        disks=True,
        sparse=True,
    ),
    _Provider(
        "lambdalabs",
        110,
        ((_US, "US", "us-west-1"), (_US, "US", "us-east-1"), ("asia_south", "IN", "asia-south-1")),
        "gpu_{count}x_{gpu}",
    ),
    _Provider(
        "datacrunch",
        90,
        ((_EUN, "FI", "FIN-01"), (_EUN, "FI", "FIN-02"), (_EUN, "IS", "ICE-01")),
        "{count}{gpu}.V",
        disks=True,
        variable=True,
    ),
    _Provider("nebius", 108, ((_EUN, "FI", "eu-north1"), (_EUW, "FR", "eu-west1")), disks=True),
    _Provider(
        "scaleway", 100, ((_EUW, "FR", "fr-par-2"), (_EUE, "PL", "pl-waw-2")), currency="EUR"
    ),
    _Provider("crusoecloud", 118, ((_US, "US", "us-east1-a"), (_EUN, "IS", "eu-iceland1-a"))),
    _Provider("massedcompute", 92, ((_US, "US", "us-central-2"), (_US, "US", "us-east-3"))),
    _Provider(
        "vultr", 125, ((_US, "US", "ewr"), ("asia_northeast", "JP", "nrt"), (_EUW, "NL", "ams"))
    ),
    _Provider("latitude", 115, ((_US, "US", "DAL"), ("south_america", "BR", "SAO"))),
    _Provider("denvr", 98, ((_CA, "CA", "Msc1"), (_US, "US", "Hou1"))),
    _Provider("fluidstack", 94, ((_US, "US", "us-fs-1"), ("middle_east", "AE", "me-fs-1"))),
    _Provider(
        "primecompute", 88, ((_US, "US", "prime-us-1"), (_EUW, "GB", "prime-uk-1")), disks=True
    ),
    _Provider(
        "tensordock",
        70,
        ((_US, "US", "td-us-17"), (_EUW, "DE", "td-de-4"), ("africa", "ZA", "td-za-1")),
        adjustable=True,
        security="community_cloud",
    ),
    _Provider("akash", 65, ((_US, "US", "akash-us-3"),), variable=True, security="community_cloud"),
)


@dataclass(frozen=True)
class _Gpu:
    """Args:
    memory: of one, in GB.
    cents: for one and an hour.
    vcpus: that come with one.
    ram: GB that come with one.
    """

    memory: int
    cents: int
    sockets: tuple[str, ...] = ("PCIe",)
    vcpus: int = 8
    ram: int = 48
    link: str | None = None


_GPUS = {
    "CPU_NODE": _Gpu(0, 6, vcpus=8, ram=32),
    "A10_24GB": _Gpu(24, 60),
    "A30_24GB": _Gpu(24, 55),
    "A40_48GB": _Gpu(48, 42),
    "A100_40GB": _Gpu(40, 110, ("PCIe", "SXM4"), 16, 120, "NVLink"),
    "A100_80GB": _Gpu(80, 139, ("PCIe", "SXM4"), 16, 120, "NVLink"),
    "H100_80GB": _Gpu(80, 239, ("PCIe", "SXM5"), 16, 180, "NVLink"),
    "H200_141GB": _Gpu(141, 319, ("SXM5",), 24, 220, "NVLink"),
    "GH200_96GB": _Gpu(96, 189, ("SXM5",), 64, 432),
    "B200_180GB": _Gpu(180, 499, ("SXM6",), 24, 240, "NVLink"),
    "B300_262GB": _Gpu(262, 629, ("SXM6",), 30, 280, "NVLink"),
    "GB200": _Gpu(186, 579, ("SXM6",), 36, 240, "NVLink"),
    "L4_24GB": _Gpu(24, 44),
    "L40_48GB": _Gpu(48, 89, vcpus=12),
    "L40S_48GB": _Gpu(48, 99, vcpus=12, ram=94),
    "RTX3070_8GB": _Gpu(8, 13, vcpus=4, ram=16),
    "RTX3080_10GB": _Gpu(10, 17, vcpus=4, ram=16),
    "RTX3080Ti_12GB": _Gpu(12, 19, vcpus=4, ram=24),
    "RTX3090_24GB": _Gpu(24, 22),
    "RTX4080_16GB": _Gpu(16, 28),
    "RTX4090_24GB": _Gpu(24, 39),
    "RTX5090_32GB": _Gpu(32, 69),
    "RTX4000Ada_20GB": _Gpu(20, 26),
    "RTX6000Ada_48GB": _Gpu(48, 77, vcpus=12),
    "RTX_PRO_6000B_96GB": _Gpu(96, 169, vcpus=16, ram=128),
    "A4000_16GB": _Gpu(16, 17),
    "A5000_24GB": _Gpu(24, 26),
    "A6000_48GB": _Gpu(48, 45),
    "V100_16GB": _Gpu(16, 39, ("PCIe", "SXM2")),
    "V100_32GB": _Gpu(32, 49, ("SXM3",)),
    "T4_16GB": _Gpu(16, 29, vcpus=4, ram=16),
    "P100_16GB": _Gpu(16, 25, vcpus=4, ram=16),
}
_COUNTS = (1, 2, 4, 8)
_NODES = (2, 4, 8, 16)


def make_gpu_offers(seed: int) -> list[GpuOffer]:
    """Return offers of single machines; two of the documentation's are always among them."""
    chance = random.Random(f"gpus {seed}")
    configurations = [
        (provider, place, gpu_type, socket, count)
        for provider in _PROVIDERS
        for place in provider.places
        for gpu_type, gpu in _GPUS.items()
        for socket in gpu.sockets
        for count in (_COUNTS if gpu.memory else (1,))
    ]
    offers = list(_documented())
    taken = {_key(offer) for offer in offers}
    chance.shuffle(configurations)
    for provider, place, gpu_type, socket, count in configurations:
        offer = _machine(chance, provider, Place(provider.name, *place), gpu_type, socket, count)
        for variant in _variants(chance, offer):
            if _key(variant) not in taken:
                taken.add(_key(variant))
                offers.append(variant)
    offers = offers[:GPU_OFFERS]
    chance.shuffle(offers)
    return offers


def make_multinode_offers(seed: int) -> list[GpuOffer]:
    """Return offers of clusters of eight-GPU machines."""
    chance = random.Random(f"clusters {seed}")
    configurations = [
        (provider, place, gpu_type, nodes)
        for provider in _PROVIDERS
        if provider.security == "secure_cloud"
        for place in provider.places
        for gpu_type, gpu in _GPUS.items()
        if gpu.link is not None and "40GB" not in gpu_type
        for nodes in _NODES
    ]
    chosen = chance.sample(configurations, MULTINODE_OFFERS)
    return [_cluster(chance, *configuration) for configuration in chosen]


def make_disk_offers(seed: int) -> list[DiskOffer]:
    """Return offers of network disks, one or two for each data centre that has some."""
    chance = random.Random(f"disks {seed}")
    offers = []
    for provider in _PROVIDERS:
        for place, multinode in itertools.product(provider.places, (False, True)):
            if provider.disks and (not multinode or chance.random() < 0.5):
                price = Decimal("0.00015") if provider.adjustable else _fraction(chance, 7, 30)
                named = provider.name == "datacrunch" or multinode
                kind = "shared" if multinode else "nvme"
                offers.append(
                    DiskOffer(
                        Place(provider.name, *place),
                        f"{kind}-{place[2].lower()}" if named else None,
                        Spec(0, 0, 100_000, price, 1, False),
                        Stock(chance.choice((0, 2, 5, 15, 50, 50))),
                        multinode,
                    )
                )
    offers[0].stock.left = 50
    return offers


def _machine(
    chance: random.Random, provider: _Provider, place: Place, gpu_type: str, socket: str, count: int
) -> GpuOffer:
    gpu = _GPUS[gpu_type]
    name = gpu_type.partition("_")[0]
    vcpus, ram = gpu.vcpus * count, gpu.ram * count
    disk, vcpu, memory = Spec(chance.choice((100, 200, 500)) * count), Spec(vcpus), Spec(ram)
    if provider.adjustable:
        disk = Spec(100, 50, 1000, Decimal("0.0003"), 10, False)
        vcpu = Spec(vcpus, vcpus // 4, vcpus * 2, Decimal("0.004"), 2, True)
    elif provider.sparse:
        disk = Spec(80, 80, 1000, Decimal("0.00014"), 1, False)
    elif provider.variable:
        disk = Spec(50, 5, 2000, _fraction(chance, 5, 25), 5, True)
        memory = Spec(ram, ram // 2, ram * 2, Decimal("0.0021"), 4, True)
    linked = gpu.link if count > 1 and socket != "PCIe" else None
    cents = gpu.cents * count * provider.factor * chance.randint(92, 115)
    return GpuOffer(
        place=place,
        cloud_id=provider.naming.format(gpu=name, socket=socket, count=count),
        gpu_type=gpu_type,
        socket=socket,
        gpu_count=count,
        gpu_memory=gpu.memory,
        price=_cents(Decimal(cents).scaleb(-6)),
        disk=disk,
        vcpu=vcpu,
        memory=memory,
        images=_IMAGES if chance.random() < 0.7 else (*_IMAGES[:3], "custom_template"),
        stock=Stock(chance.choice((0, 1, 2, 3, 5, 8, 15, 40))),
        currency=provider.currency,
        security=provider.security,
        interconnect=900 if linked else None,
        interconnect_type=linked,
        internet_speed=chance.choice((None, None, 1000, 10_000)),
        provisioning_time=chance.choice((None, 2, 5, 10, 20)),
        variable=provider.variable,
        sparse=provider.sparse,
    )


def _variants(chance: random.Random, offer: GpuOffer) -> Iterator[GpuOffer]:
    """The offer, and at times cheaper ones that may be taken back, or are paid for in advance."""
    yield offer
    if chance.random() < 0.15:
        name, price = f"{offer.cloud_id}-spot", _cents(offer.price * Decimal("0.55"))
        yield replace(offer, cloud_id=name, price=price, spot=True, variable=True)
    if chance.random() < 0.05:
        name, price = f"{offer.cloud_id}-7d", _cents(offer.price * Decimal("0.8"))
        yield replace(offer, cloud_id=name, price=price, prepaid=24 * 7)


def _cluster(
    chance: random.Random,
    provider: _Provider,
    place: tuple[str, str, str],
    gpu_type: str,
    nodes: int,
) -> GpuOffer:
    socket = _GPUS[gpu_type].sockets[-1]
    machine = _machine(chance, provider, Place(provider.name, *place), gpu_type, socket, 8)
    count = 8 * nodes
    return replace(
        machine,
        cloud_id=f"{gpu_type.partition('_')[0]}-{socket}-{count}".lower(),
        gpu_count=count,
        price=machine.price * nodes,
        shared_disk=Spec(1000, 100, 50_000, _fraction(chance, 8, 20), 100, False),
        stock=Stock(chance.choice((0, 1, 1, 2, 4))),
        interconnect=chance.choice((1600, 3200, 3200)),
        interconnect_type=chance.choice(("InfiniBand", "InfiniBand", "RoCE")),
        sparse=False,
    )


def _documented() -> Iterator[GpuOffer]:
    """The two offers that the documentation reckons with."""
    adjustable, sparse = _PROVIDERS[0], _PROVIDERS[1]
    chance = random.Random(0)
    for provider in (adjustable, sparse):
        place = Place(provider.name, *provider.places[0])
        offer = _machine(chance, provider, place, "H100_80GB", "PCIe", 1)
        memory = Spec(180 if provider is adjustable else 251)
        if provider is adjustable:
            offer = replace(offer, vcpu=replace(offer.vcpu, least=4, default=16, most=32))
        price, stock = Decimal("2.69"), Stock(50 if provider is adjustable else 2)
        yield replace(offer, memory=memory, price=price, stock=stock, images=_IMAGES)


def _key(offer: GpuOffer) -> tuple[object, ...]:
    return (offer.place, offer.cloud_id, offer.gpu_type, offer.socket, offer.gpu_count)


def _cents(price: Decimal) -> Decimal:
    return price.quantize(Decimal("0.01")) or Decimal("0.01")


def _fraction(chance: random.Random, least: int, most: int) -> Decimal:
    """A price of a GB: some hundred-thousandths."""
    return Decimal(chance.randint(least, most)).scaleb(-5)
