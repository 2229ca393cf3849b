"""A small machine of each optical system and an ideal one, with an algorithm; name -> (fabric, algorithm)."""

SYSTEMS = {
    "ramp": ("ramp:groups=4,racks=4,wavelengths=8", "ramp"),
    "sipac": ("sipac:radix=4,levels=2,wavelengths=8", "sipco"),
    "terarack": ("terarack:nodes=15,wavelengths=2", "wrht"),
    "oddl": ("oddl:shape=2x4", "halving_doubling"),
    "lightpath": ("lightpath:shape=4x4,waveguides=1,lasers=3", "lumorph"),
    "ideal": ("ideal:nodes=8", "ring"),
}
