package prompt

import (
	"fmt"
	"strings"
)

// The tags around text that returns to a model.
const (
	resultTag = "tool_result"
	docTag    = "extension_doc"
)

// Result delimits what a tool returned. Nothing in text can end the delimited part, begin a block or imitate another
// tag of a prompt. name is the tool; status is ok, error or denied.
func Result(name, status, text string) string {
	return delimited(resultTag, fmt.Sprintf(`tool="%s" status="%s"`, attribute(name), attribute(status)), text)
}

// Document delimits the text of a document, as Result does.
func Document(name, text string) string {
	return delimited(docTag, fmt.Sprintf(`name="%s"`, attribute(name)), text)
}

func delimited(tag, attributes, text string) string {
	text = strings.TrimRight(Data(text), "\n")
	return fmt.Sprintf("<%s %s>\n%s\n</%s>\n", tag, attributes, text, tag)
}

func attribute(s string) string {
	return strings.ReplaceAll(Line(s, 200), `"`, "'")
}

// IsDocument says whether text begins like a result of Document. Foreign text that went through Data never does.
func IsDocument(text string) bool { return strings.HasPrefix(text, "<"+docTag+" ") }
