package source

// nodePlatform is the name of this platform in Node, which release files are named by.
const nodePlatform = "win32"
