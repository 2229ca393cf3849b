"""Light: does every transfer have a circuit that the hardware can make, and has each unit one signal on a wavelength?"""
