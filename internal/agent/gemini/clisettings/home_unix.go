//go:build unix

package clisettings

// homeVariable names the home folder.
const homeVariable = "HOME"
