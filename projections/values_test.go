package projections

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestMoneyIsExact(t *testing.T) {
	for m, want := range map[Money]string{
		0: "0", 1: "0.000001", 31_000: "0.031", 1_000_000: "1", 1_500_000: "1.5", 999_999: "0.999999",
		math.MaxUint64: "18446744073709.551615",
	} {
		if got := m.String(); got != want {
			t.Errorf("Money(%d) reads %s, want %s", uint64(m), got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := Money(rapid.Uint64().Draw(t, "micros"))
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var back Money
		if err := json.Unmarshal(data, &back); err != nil || back != m {
			t.Fatalf("%d came back from %s as %d, %v", uint64(m), data, uint64(back), err)
		}
	})
	for _, bad := range []string{`0.0000001`, `-1`, `"1"`, `1e3`, `18446744073709.551616`} {
		if err := json.Unmarshal([]byte(bad), new(Money)); err == nil {
			t.Errorf("%s was taken for an amount", bad)
		}
	}
}

func TestValuesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Max(math.MaxInt64).Draw(t, "n")
		if got := count(number(n)); got != n {
			t.Fatalf("%d came back as %d", n, got)
		}
		texts := rapid.SliceOf(rapid.String()).Draw(t, "texts")
		back, err := unlist(list(texts))
		if err != nil || len(back) != len(texts) {
			t.Fatalf("%q came back as %q, %v", texts, back, err)
		}
		for i := range texts {
			if back[i] != texts[i] {
				t.Fatalf("%q came back as %q", texts, back)
			}
		}
		at := time.Unix(rapid.Int64Range(1, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()
		if got := moment(nanos(at)); !got.Equal(at) || got.Location() != time.UTC {
			t.Fatalf("%v came back as %v", at, got)
		}
	})
	if number(math.MaxUint64) != math.MaxInt64 || count(-1) != 0 || !moment(nanos(time.Time{})).IsZero() {
		t.Error("a value out of range is not kept within it")
	}
	if u := (Usage{Calls: math.MaxUint64, Cost: math.MaxUint64}).plus(Usage{Calls: 1, Cost: 1}); u.Calls != math.MaxUint64 || u.Cost != math.MaxUint64 {
		t.Errorf("a sum went round to %+v", u)
	}
}
