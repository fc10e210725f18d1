package words

import "fmt"

// Plural returns a count in words: "1 tool", "2 tools".
func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
