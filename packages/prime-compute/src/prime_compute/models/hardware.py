"""The words that offers and pods share. A newer platform may use others: they stay plain text."""

from __future__ import annotations

from prime_core.models import StrEnum


class GpuType(StrEnum):
    """GPU models, with the memory of one GPU."""

    CPU_NODE = "CPU_NODE"
    A10_24GB = "A10_24GB"
    A100_80GB = "A100_80GB"
    A100_40GB = "A100_40GB"
    A30_24GB = "A30_24GB"
    A40_48GB = "A40_48GB"
    B200_180GB = "B200_180GB"
    B300_262GB = "B300_262GB"
    GB200 = "GB200"
    GB300 = "GB300"
    RTX3070_8GB = "RTX3070_8GB"
    RTX3080_10GB = "RTX3080_10GB"
    RTX3080TI_12GB = "RTX3080Ti_12GB"
    RTX3090_24GB = "RTX3090_24GB"
    RTX3090TI_24GB = "RTX3090Ti_24GB"
    RTX4070TI_12GB = "RTX4070Ti_12GB"
    RTX4080_16GB = "RTX4080_16GB"
    RTX4080TI_16GB = "RTX4080Ti_16GB"
    RTX4090_24GB = "RTX4090_24GB"
    RTX5090_32GB = "RTX5090_32GB"
    H100_80GB = "H100_80GB"
    H200_96GB = "H200_96GB"
    GH200_96GB = "GH200_96GB"
    H200_141GB = "H200_141GB"
    GH200_480GB = "GH200_480GB"
    GH200_624GB = "GH200_624GB"
    L4_24GB = "L4_24GB"
    L40_48GB = "L40_48GB"
    L40S_48GB = "L40S_48GB"
    RTX4000_8GB = "RTX4000_8GB"
    RTX5000_16GB = "RTX5000_16GB"
    RTX6000_24GB = "RTX6000_24GB"
    RTX8000_48GB = "RTX8000_48GB"
    RTX2000ADA_16GB = "RTX2000Ada_16GB"
    RTX4000ADA_20GB = "RTX4000Ada_20GB"
    RTX5000ADA_32GB = "RTX5000Ada_32GB"
    RTX6000ADA_48GB = "RTX6000Ada_48GB"
    A2000_6GB = "A2000_6GB"
    A4000_16GB = "A4000_16GB"
    A4500_20GB = "A4500_20GB"
    A5000_24GB = "A5000_24GB"
    A6000_48GB = "A6000_48GB"
    V100_16GB = "V100_16GB"
    V100_32GB = "V100_32GB"
    P100_16GB = "P100_16GB"
    T4_16GB = "T4_16GB"
    P4_8GB = "P4_8GB"
    P40_24GB = "P40_24GB"
    RTX_PRO_6000B_96GB = "RTX_PRO_6000B_96GB"


class GpuSocket(StrEnum):
    """Form factors of GPUs."""

    PCIE = "PCIe"
    SXM2 = "SXM2"
    SXM3 = "SXM3"
    SXM4 = "SXM4"
    SXM5 = "SXM5"
    SXM6 = "SXM6"


class ProviderType(StrEnum):
    """Providers of GPUs and disks."""

    RUNPOD = "runpod"
    FLUIDSTACK = "fluidstack"
    LAMBDALABS = "lambdalabs"
    HYPERSTACK = "hyperstack"
    OBLIVUS = "oblivus"
    CUDOCOMPUTE = "cudocompute"
    SCALEWAY = "scaleway"
    TENSORDOCK = "tensordock"
    DATACRUNCH = "datacrunch"
    LATITUDE = "latitude"
    CRUSOECLOUD = "crusoecloud"
    MASSEDCOMPUTE = "massedcompute"
    AKASH = "akash"
    PRIMEINTELLECT = "primeintellect"
    PRIMECOMPUTE = "primecompute"
    DC_IMPALA = "dc_impala"
    DC_KUDU = "dc_kudu"
    DC_ROAN = "dc_roan"
    NEBIUS = "nebius"
    DC_ELAND = "dc_eland"
    DC_WILDEBEEST = "dc_wildebeest"
    VULTR = "vultr"
    DC_GNU = "dc_gnu"
    DENVR = "denvr"


class Region(StrEnum):
    """Geographic regions."""

    AFRICA = "africa"
    ASIA_SOUTH = "asia_south"
    ASIA_NORTHEAST = "asia_northeast"
    AUSTRALIA = "australia"
    CANADA = "canada"
    EU_EAST = "eu_east"
    EU_NORTH = "eu_north"
    EU_WEST = "eu_west"
    EUROPE_WEST = "europe_west"
    MIDDLE_EAST = "middle_east"
    SOUTH_AMERICA = "south_america"
    UNITED_STATES = "united_states"


class SecurityType(StrEnum):
    """Classes of hosting."""

    SECURE_CLOUD = "secure_cloud"
    COMMUNITY_CLOUD = "community_cloud"


class StockStatus(StrEnum):
    """How much of an offer is left, roughly."""

    AVAILABLE = "Available"
    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"
    UNAVAILABLE = "Unavailable"


class Currency(StrEnum):
    """Currencies of prices."""

    USD = "USD"
    EUR = "EUR"


class EnvironmentImage(StrEnum):
    """Images that a pod boots."""

    UBUNTU_22_CUDA_12 = "ubuntu_22_cuda_12"
    CUDA_12_1_PYTORCH_2_2 = "cuda_12_1_pytorch_2_2"
    CUDA_11_8_PYTORCH_2_1 = "cuda_11_8_pytorch_2_1"
    CUDA_12_1_PYTORCH_2_3 = "cuda_12_1_pytorch_2_3"
    CUDA_12_1_PYTORCH_2_4 = "cuda_12_1_pytorch_2_4"
    CUDA_12_4_PYTORCH_2_4 = "cuda_12_4_pytorch_2_4"
    CUDA_12_4_PYTORCH_2_5 = "cuda_12_4_pytorch_2_5"
    CUDA_12_4_PYTORCH_2_6 = "cuda_12_4_pytorch_2_6"
    CUDA_12_6_PYTORCH_2_7 = "cuda_12_6_pytorch_2_7"
    STABLE_DIFFUSION = "stable_diffusion"
    AXOLOTL = "axolotl"
    BITTENSOR = "bittensor"
    HIVEMIND = "hivemind"
    PETALS_LLAMA = "petals_llama"
    VLLM_LLAMA_8B = "vllm_llama_8b"
    VLLM_LLAMA_70B = "vllm_llama_70b"
    VLLM_LLAMA_405B = "vllm_llama_405b"
    CUSTOM_TEMPLATE = "custom_template"
    FLUX = "flux"
    PRIME_RL = "prime_rl"
