package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/contract"
	"github.com/rollcall-dev/rollcall/domain"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// Whatever a file is, it is read no further than it may be long: one without
// an end, such as a device or a pipe, is refused like one that is too long.
func TestFilesWithoutEnd(t *testing.T) {
	long := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(long, []byte(strings.Repeat("# long\n", maxFile/4)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{long, "/dev/zero"} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("this system has no %s", file)
		}
		_, team := LoadTeam(file)
		_, settings := Load(Sources{Flags: map[string]string{"config": file}, Env: func(string) (string, bool) { return "", false }, Dir: t.TempDir(), Home: t.TempDir()})
		for code, err := range map[string]error{"team-invalid": team, "settings-invalid": settings} {
			r, ok := errors.AsType[*domain.Refusal](err)
			if !ok || r.Code != code || !strings.Contains(r.Why, "more than the 524288 bytes") || r.What == "" || r.Try == "" {
				t.Errorf("%s: %v, want a refusal %s", file, err, code)
			}
		}
	}
}

// A team as large as a file can say is refused at once, with where it is too many.
func TestTooManyMembers(t *testing.T) {
	var b strings.Builder
	b.WriteString("contract: dag\nmembers:\n")
	for i := range 2_000 {
		fmt.Fprintf(&b, "- {name: A%d, brief: x, depends_on: [A%d]}\n", i, (i+1)%2_000)
	}
	_, err := ParseTeam("team.yaml", []byte(b.String()))
	if err == nil || !strings.Contains(err.Error(), "team.yaml:1003:10: 2000 members are listed") {
		t.Errorf("got %.300v", err)
	}
}

// A name means the same in a file as in a conversation: whatever a contract has
// tools for is reserved, and each contract can be named.
func TestContractsAreKnownByThemselves(t *testing.T) {
	for name, c := range contract.All() {
		if _, err := ParseTeam("team.yaml", []byte("contract: "+name)); err != nil {
			t.Error(err)
		}
		for _, tool := range c.Tools(rollcallv1.MemberRole_MEMBER_ROLE_LEAD) {
			if _, err := ParseTeam("team.yaml", []byte("agents: {"+tool.GetName()+": {prompt: x}}")); err == nil {
				t.Errorf("an agent type can be named %s, as a tool of %s", tool.GetName(), name)
			}
		}
	}
}
