package nodefile

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead: whatever lies in the data directory is a node's address or an
// error, and an address that is written is read again.
func FuzzRead(f *testing.F) {
	for _, s := range []string{`{"pid":7,"url":"nats://127.0.0.1:1","token":"t"}`, `{"pid":-1,"url":"x"}`, `{"url":""}`, `{`, "", "null", "[]", "\xff", `{"pid":1e99,"url":"x"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, JSON), data, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := Read(dir)
		if err != nil {
			if info != (Info{}) {
				t.Fatalf("%q is %+v and the error %v", data, info, err)
			}
			return
		}
		if err := Write(dir, info); err != nil {
			t.Fatal(err)
		}
		if again, err := Read(dir); err != nil || again != info {
			t.Errorf("%q is %+v, written again %+v, %v", data, info, again, err)
		}
	})
}
