package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Publishers, as docs/publish.md tells it: with a client's credentials, by the
// plain nats command line and by the programs in examples.
func TestPublish(t *testing.T) {
	t.Parallel()
	o := newOffice(t, script(t, ingressScript), "client-main")
	o.as("client-main", "run", "A desk.", "--name", "desk", "--contract", "mailbox", "--progress", "quiet")
	o.walk("publish.md", "tls://nats-1:4222", o.url, "go run ./examples/", "")
	if out := o.as("client-main", "verify", "desk"); !strings.Contains(out, "everything holds") {
		t.Error(out)
	}
}

var goBlock = regexp.MustCompile("(?s)\\]\\(\\.\\./(examples/[a-z]+/main\\.go)\\):\n\n```go\n(.*?)```")

// The programs that the page shows are those that are run.
func TestPublishShowsTheExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/publish.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := goBlock.FindAllStringSubmatch(string(page), -1)
	programs, err := filepath.Glob("../../examples/*/main.go")
	if err != nil || len(programs) != len(shown) {
		t.Errorf("%d of %d examples are shown, %v", len(shown), len(programs), err)
	}
	for _, s := range shown {
		source, err := os.ReadFile(filepath.Join("../..", s[1]))
		if err != nil {
			t.Fatal(err)
		}
		body := "\t" + strings.ReplaceAll(strings.TrimSuffix(s[2], "\n"), "\n", "\n\t")
		if !strings.Contains(string(source), body) {
			t.Errorf("%s is not as the page shows it:\n%s", s[1], body)
		}
	}
}
