package projections

import (
	"bufio"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/eventstore"
	"github.com/rollcall-dev/rollcall/eventstore/memory"
	rollcallv1 "github.com/rollcall-dev/rollcall/proto/rollcall/v1"
)

// childEnv makes this test binary fold the log in the folder it names.
const childEnv = "ROLLCALL_PROJECTIONS_FOLD"

// stored is a message of the log in a file.
type stored struct {
	Key domain.Key
	Seq uint64
	Raw []byte
}

// foldInChild folds the log of a folder into its read models, one commit a
// batch, and prints a line after each.
func foldInChild(dir string) error {
	f, err := os.Open(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer f.Close()
	var log []stored
	if err := gob.NewDecoder(f).Decode(&log); err != nil {
		return err
	}
	db, err := Open(tContext, filepath.Join(dir, "views.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	var at uint64
	if err := db.read.QueryRow("SELECT seq FROM position").Scan(&at); err != nil {
		return err
	}
	for _, m := range log {
		if m.Seq <= at {
			continue
		}
		c, err := domain.Unseal(m.Raw)
		if err != nil {
			return err
		}
		if err := db.fold(tContext, []item{{Recorded: eventstore.Recorded{Key: m.Key, Seq: m.Seq, Commit: c, Raw: m.Raw}}}); err != nil {
			return err
		}
		fmt.Println(m.Seq)
	}
	return nil
}

// TestKilledWhileFolding kills the process that folds, with SIGKILL and at
// any point, again and again until it gets through, and finds every row as if
// nothing had happened.
func TestKilledWhileFolding(t *testing.T) {
	log := memory.New()
	chains := []*chain{newChain(t, log, "01a", "one"), newChain(t, log, "01b", "two"), newChain(t, log, "01c", "three")}
	for i := range 120 {
		c := chains[i%len(chains)]
		id := fmt.Sprintf("msg%d", i)
		run := fmt.Sprintf("r%d", i)
		c.message(id)
		c.add(
			domain.NewEvent(&rollcallv1.RunStarted{Run: run, Member: domain.LeadID, Consumed: []*rollcallv1.MessageRef{{Message: id}}}),
			domain.NewEvent(&rollcallv1.ModelCallStarted{Run: run, Member: domain.LeadID, Step: 1, Attempt: 1}),
			domain.NewEvent(&rollcallv1.ModelReplied{Run: run, Member: domain.LeadID, Step: 1, Attempt: 1, Usage: &rollcallv1.Usage{InputTokens: 3}}),
			domain.NewEvent(&rollcallv1.RunFinished{Run: run, Member: domain.LeadID, Reason: rollcallv1.FinishReason_FINISH_REASON_IDLE}),
		)
	}
	items := read(t, log)
	dir := t.TempDir()
	writeLog(t, dir, items)

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	kills := 0
	for !foldUntil(t, dir, 1+chance.IntN(40)) {
		if kills++; kills > len(items) {
			t.Fatal("the child makes no progress")
		}
	}
	if kills < 5 {
		t.Errorf("killed only %d times", kills)
	}
	whole := open(t)
	if err := whole.fold(tContext, items); err != nil {
		t.Fatal(err)
	}
	killed := openAt(t, filepath.Join(dir, "views.db"))
	defer killed.Close()
	if diff := cmp.Diff(dump(t, whole), dump(t, killed)); diff != "" {
		t.Errorf("rebuilt (-) and killed %d times (+) differ:\n%s", kills, diff)
	}
}

func writeLog(t *testing.T, dir string, items []item) {
	t.Helper()
	var log []stored
	for _, i := range items {
		log = append(log, stored{i.Key, i.Seq, i.Raw})
	}
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := gob.NewEncoder(f).Encode(log); err != nil {
		t.Fatal(err)
	}
}

// foldUntil starts the child and kills it once it has written some batches. It
// reports whether the child came to the end instead.
func foldUntil(t *testing.T, dir string, batches int) bool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range batches {
		if !lines.Scan() {
			if err := cmd.Wait(); err != nil {
				t.Fatalf("the child: %v", err)
			}
			return true
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	return false
}
