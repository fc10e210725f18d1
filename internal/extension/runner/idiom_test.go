package runner

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/pollux-companion/pollux/internal/pace"
	"github.com/pollux-companion/pollux/internal/peers"
)

// Each runtime's own argument parser understands what pollux passes to a program (SPEC X-1).
func TestIdioms(t *testing.T) {
	pace.NotRaced(t, "the programs that it starts share no memory with pollux")
	args := []string{"text:string=\"-d\"", "depth:integer=3", "all:boolean", "deep:boolean=false", "colour:boolean=true", "list?:array", "note?:string"}
	for runtime, program := range map[string][]string{
		"python": {"python3", "-c", `
import argparse, json
p = argparse.ArgumentParser()
p.add_argument("--text"); p.add_argument("--depth", type=int)
p.add_argument("--all", action="store_true"); p.add_argument("--deep", action="store_true")
p.add_argument("--colour", action=argparse.BooleanOptionalAction, default=True)
p.add_argument("--list", type=json.loads); p.add_argument("--note")
a = p.parse_args()
print(json.dumps([a.text, a.depth, a.all, a.deep, a.colour, a.list, a.note]))`},
		"node": {"node", "-e", `
const { values: a } = require('util').parseArgs({ allowNegative: true, options: { text: { type: 'string' }, depth: { type: 'string' },
  all: { type: 'boolean', default: false }, deep: { type: 'boolean', default: false }, colour: { type: 'boolean', default: true },
  list: { type: 'string' }, note: { type: 'string' } } });
console.log(JSON.stringify([a.text, Number(a.depth), a.all, a.deep, a.colour, a.list === undefined ? null : JSON.parse(a.list), a.note ?? null]));`, "--"},
		"shell": {"sh", "-c", `
text= depth= all=false deep=false colour= list=null note=null
while [ $# -gt 0 ]; do
  case $1 in
    --text) text=$2; shift 2 ;; --depth) depth=$2; shift 2 ;; --list) list=$2; shift 2 ;; --note) note=\"$2\"; shift 2 ;;
    --all) all=true; shift ;; --deep) deep=true; shift ;; --colour) colour=true; shift ;; --no-colour) colour=false; shift ;;
    *) echo "unknown: $1" >&2; exit 2 ;;
  esac
done
echo "[\"$text\",$depth,$all,$deep,$colour,$list,$note]"`, "sh"},
	} {
		if _, err := exec.LookPath(program[0]); err != nil && !peers.Required() {
			t.Logf("%s left out: no %s here", runtime, program[0])
			continue
		}
		for object, want := range map[string]string{
			`{"all":true}`:                `["-d",3,true,false,true,null,null]`,
			`{"all":false,"deep":true}`:   `["-d",3,false,true,true,null,null]`,
			`{"all":true,"colour":false}`: `["-d",3,true,false,false,null,null]`,
			`{"all":false,"text":"--all","depth":-4,"list":[1,"a"],"note":"n"}`: `["--all",-4,false,false,true,[1,"a"],"n"]`,
			`{"all":true,"note":null,"colour":true,"deep":false}`:               `["-d",3,true,false,true,null,null]`,
		} {
			line, _, err := arguments(tool(runtime, args...), json.RawMessage(object), nil)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(program[0], append(program[1:], line...)...).CombinedOutput()
			if got := strings.ReplaceAll(strings.TrimSpace(string(out)), ", ", ","); err != nil || got != want {
				t.Errorf("%s, %s: %q gives %s, want %s (%v)", runtime, object, line, got, want, err)
			}
		}
	}
}
