// Package inside is the first process of a sandbox on Linux. It builds the sandbox around itself, starts the command,
// waits for it, and ends every other process of the sandbox. Importing the package is enough: in that process it
// takes over before main, and before the rest of the program is initialised.
package inside
