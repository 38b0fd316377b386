package e2e_test

import (
	"testing"
	"time"

	"github.com/rollcall-dev/rollcall/internal/model/scripted/demo"
)

func TestZZMeasure(t *testing.T) {
	p := newPlace(t, demo.Script())
	for range 3 {
		at := time.Now()
		p.start()
		t.Logf("start %v", time.Since(at))
		at = time.Now()
		c := p.client()
		id := p.open(c, "x", demo.Objective(demo.SendUpdate, demo.NewField))
		t.Logf("open %v", time.Since(at))
		at = time.Now()
		p.until(c, id, "quiet", quiet)
		t.Logf("done %v", time.Since(at))
		at = time.Now()
		p.kill()
		t.Logf("kill %v", time.Since(at))
		at = time.Now()
		p.start()
		t.Logf("start %v", time.Since(at))
		at = time.Now()
		p.stop()
		t.Logf("stop %v", time.Since(at))
	}
}
