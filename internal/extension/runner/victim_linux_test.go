package runner

import (
	"context"
	"fmt"
	"os"
)

// victim is a pollux that is killed while it runs the tool "t" of the extension in RUNNER_VICTIM_EXT.
func victim(root string) int {
	w := worldAt(nil, root)
	q := w.request(os.Getenv("RUNNER_VICTIM_EXT"), os.Getenv("RUNNER_VICTIM_ARGS"))
	q.Unsafe = os.Getenv("RUNNER_VICTIM_UNSAFE") != ""
	_, err := New(w.options).Run(context.Background(), q)
	fmt.Println(err)
	return 1
}
