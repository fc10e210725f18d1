package clisettings

// homeVariable names the home folder.
const homeVariable = "USERPROFILE"
