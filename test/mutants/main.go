// Command mutants seeds faults into the program, one at a time, and demands
// that the test named beside each turns red. A promise whose fault no test
// notices is only a hope.
//
// A mutant is a record of the tables here (domain.go, engine.go, store.go,
// outside.go): a piece of one file and what stands there instead. It is
// compiled with Go's own overlay, so the tree is never touched and no
// production file knows of it. docs/mutants.md tells what the mutants found.
//
//	go run ./test/mutants                                 all of them
//	go run ./test/mutants -only 'wake|mail'               those whose name matches
//	go run ./test/mutants -only wake -suite ./domain/...  which tests of these packages notice?
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	only := flag.String("only", "", "regular expression on the mutants' names")
	suite := flag.String("suite", "", "packages, with commas: run all their tests instead of the named one and list who notices")
	skip := flag.String("skip", "", "regular expression on the tests that -suite leaves out")
	workers := flag.Int("j", max(1, runtime.NumCPU()/2), "mutants at a time")
	list := flag.Bool("list", false, "print the mutants as rows of docs/mutants.md and run nothing")
	flag.Parse()
	chosen, err := choose(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if *list {
		for _, m := range chosen {
			fmt.Println(m.row())
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, chosen, *suite, *skip, *workers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

func choose(only string) ([]Mutant, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var chosen []Mutant
	for _, m := range All() {
		if pattern.MatchString(m.Name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant's name matches %q", only)
	}
	return chosen, nil
}

// run prints a line for each mutant as it ends, and reports whether all were
// killed by their tests.
func run(ctx context.Context, mutants []Mutant, suite, skip string, workers int) (bool, error) {
	lab, err := newLab(".")
	if err != nil {
		return false, err
	}
	defer lab.close()
	begun := time.Now()
	if suite != "" {
		for _, m := range mutants {
			notice, err := lab.survey(ctx, m, strings.Split(suite, ","), skip)
			if err != nil {
				return false, err
			}
			fmt.Printf("%-34s %s\n", m.Name, notice)
		}
		return true, nil
	}
	var mu sync.Mutex
	var survived []string
	var wg sync.WaitGroup
	slots := make(chan struct{}, workers)
	for _, m := range mutants {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			v := lab.try(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("%-8s %-34s %s %s\n%8s %s\n", v.word(), m.Name, m.Package, m.Test, "", v.how)
			if !v.killed {
				survived = append(survived, m.Name)
			}
		})
	}
	wg.Wait()
	fmt.Printf("\n%d mutants, %d killed, %d not, in %s\n", len(mutants), len(mutants)-len(survived), len(survived), time.Since(begun).Round(time.Second))
	for _, name := range survived {
		fmt.Println("not killed:", name)
	}
	return len(survived) == 0, nil
}
