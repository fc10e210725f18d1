package ide

// system is what Machine.OS is here.
const system = "windows"
