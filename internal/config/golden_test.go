package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

var update = flag.Bool("update", false, "write what the files give")

// told is a refusal as a person reads it.
func told(t *testing.T, err error) string {
	t.Helper()
	r, ok := errors.AsType[*domain.Refusal](err)
	if !ok {
		t.Fatalf("not a refusal: %v", err)
	}
	return "error: " + r.What + " [" + r.Code + "]\nwhy: " + r.Why + "\ntry: " + r.Try + "\n"
}

// golden runs each archive of a directory: read makes the file "want" of the
// file "in".
func golden(t *testing.T, dir string, read func(t *testing.T, in []byte) string) {
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives in %s: %v", dir, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := read(t, a.Files[0].Data)
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if len(a.Files) != 2 {
				t.Fatal("the archive has no want: run with -update")
			}
			if d := cmp.Diff(string(a.Files[1].Data), got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestTeamFiles(t *testing.T) {
	golden(t, "team", func(t *testing.T, in []byte) string {
		team, err := ParseTeam("team.yaml", in)
		if err != nil {
			return told(t, err)
		}
		o := new(rollcallv1.OpenConversation)
		team.Apply(o)
		return strings.ReplaceAll(protojson.MarshalOptions{Multiline: true, Indent: " "}.Format(o), ":  ", ": ") + "\n"
	})
}

func TestSettingsFiles(t *testing.T) {
	golden(t, "settings", func(t *testing.T, in []byte) string {
		dir, home := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "rollcall.yaml"), in, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(Sources{Dir: dir, Home: home, Env: func(string) (string, bool) { return "", false }})
		var out string
		if err != nil {
			out = told(t, err)
		} else {
			for _, row := range s.Show() {
				out += row.Name + " = " + row.Value + " (" + row.Origin + ")\n"
			}
			for _, w := range s.Warnings {
				out += "warning: " + w + "\n"
			}
		}
		return strings.NewReplacer(dir, "DIR", home, "HOME").Replace(out)
	})
}
