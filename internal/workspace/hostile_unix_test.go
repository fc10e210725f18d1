//go:build unix

package workspace

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pollux-companion/pollux/internal/pace"
)

// cpu is the time that processors spend on f and on nothing else here, however busy the machine is.
func cpu(f func()) time.Duration {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			panic(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.GC()
	before := used()
	f()
	return used() - before
}

// A hostile ignore file costs at most 20 ms a context (SPEC A-4, C-8).
func TestHostilePatterns(t *testing.T) {
	pace.NotRaced(t, "one goroutine, and a minute of it")
	many := func(line string) string { return strings.Repeat(line+"\n", min(10000, (1<<20)/(len(line)+1))) }
	each := func(format string) string { // like many, but no line twice
		var all strings.Builder
		for i := 0; i < 10000 && all.Len()+len(format)+4 < 1<<20; i++ {
			fmt.Fprintf(&all, format+"\n", i)
		}
		return all.String()
	}
	one := func(s string) string { return strings.Repeat(s, (1<<20-10)/len(s)) }
	deep := strings.Repeat("a/", 60)
	name := strings.Repeat("a", 200)
	for what, content := range map[string]string{
		"stars":                 many(strings.Repeat("*a", 48) + "b"),
		"a late star":           many("*" + strings.Repeat("a", 95) + "b"),
		"one pattern of stars":  one("*a") + "b",
		"one late star":         "*" + one("a") + "b",
		"any depth":             many(strings.Repeat("**/", 30) + "b"),
		"any depth, names":      many(strings.Repeat("**/a/", 18) + "b"),
		"one of any depth":      one("**/") + "b",
		"one of any depth, too": one("**/*a*/") + "b",
		"classes":               many("[" + strings.Repeat("a-zA-Z", 15) + "]b"),
		"one class":             "[" + one("a-z") + "]",
		"many classes":          one("[a]") + "b",
		"classes in a class":    "[" + one("[:") + "]",
		"named classes":         "*" + one("[[:alpha:]]") + "0",
		"an open class":         one("["),
		"questions":             many("*" + strings.Repeat("?", 90) + "b"),
		"backslashes":           many(strings.Repeat(`\a`, 48)),
		"many literals":         many("other"),
		"other literals":        each("%d" + strings.Repeat("x", 95)),
		"other paths":           each("/%d" + strings.Repeat("/x", 45)),
		"long paths":            each("/%d" + strings.Repeat("/x", 4000)),
		"long paths, escaped":   each(`/%d/\y` + strings.Repeat("/x", 4000)),
		"escaped paths":         each(`/%d/\y` + strings.Repeat("/x", 43)),
		"other classes":         each("%d" + strings.Repeat("[a-z][!a-c]*", 7)),
		"the same literal":      many("!" + name + "0/"),
		"long lines":            one("x"),
		"anchored":              many("a/*/a/*/a/*/b"),
	} {
		t.Run(what, func(t *testing.T) {
			b := newBox(t, nil)
			b.put(".geminiignore", content)
			past := time.Now().Add(-time.Minute)
			if err := os.Chtimes(b.path(".geminiignore"), past, past); err != nil {
				t.Fatal(err)
			}
			var files []string
			for i := range 20 {
				files = append(files, b.put(fmt.Sprintf("%s%s%d", deep[:2*3*i], name, i), ""))
			}
			plain := newBox(t, nil)
			var same []string
			for i := range 20 {
				same = append(same, plain.put(fmt.Sprintf("%s%s%d", deep[:2*3*i], name, i), ""))
			}
			context := func(w *Workspace, files []string) time.Duration {
				return cpu(func() {
					share := w.Sharing()
					for _, f := range files {
						share(f)
					}
				})
			}
			// The first context reads the file, the others have it.
			for _, round := range []string{"first", "next"} {
				best := time.Hour
				for range 5 {
					if round == "first" {
						clear(b.ignores.files)
					}
					best = min(best, context(b.Workspace, files)-context(plain.Workspace, same))
				}
				t.Logf("the %s context: %v", round, best)
				if best > 3*20*time.Millisecond { // of the processor, the best of five: a busy machine costs it less than the clock
					t.Errorf("the %s context takes %v longer than without the file", round, best)
				}
			}
		})
	}
}

// Many ignore files cost no more than one, and an honest neighbour is shared as soon as the hostile one is known.
func TestHostileBesideHonest(t *testing.T) {
	b := newBox(t, nil)
	b.put("bad/.geminiignore", strings.Repeat("*"+strings.Repeat("a", 90)+"b\n", 10000))
	b.put("good/.geminiignore", "secret\n")
	bad, good, secret := b.put("bad/"+strings.Repeat("a", 200), ""), b.put("good/f", ""), b.put("good/secret", "")
	b.Sharing()(bad)
	for range 2 {
		share := b.Sharing()
		if share(bad) || !share(good) || share(secret) {
			t.Errorf("bad %v, good %v, secret %v", share(bad), share(good), share(secret))
		}
	}
	if list := b.Withheld(); len(list) != 1 || list[0].Folder != b.path("bad") {
		t.Errorf("%v", list)
	}
	dir := "nest"
	for range 30 {
		b.put(dir+"/.geminiignore", strings.Repeat("x\n", 1<<18)+"# "+dir)
		dir += "/a"
	}
	f := b.put(dir+"/f", "")
	for range 3 {
		took := cpu(func() {
			if b.MayShare(f) {
				t.Error("shared below too many patterns")
			}
		})
		if took > 20*time.Millisecond*pace.Slack {
			t.Errorf("thirty large files take %v", took)
		}
	}
}
