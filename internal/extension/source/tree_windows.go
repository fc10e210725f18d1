package source

// nonBlock: files do not block here.
const nonBlock = 0
