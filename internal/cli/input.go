package cli

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/api"
)

// inputFile is a file for the Lead's workspace.
type inputFile struct {
	path string
	data []byte
}

// maxInput bounds what one run takes in.
const (
	maxInputFiles = 2000
	maxInputBytes = 256 << 20
)

// readInput reads the files and directories of --input. A directory brings what
// is below it under its own paths; links and special files are left out, which
// is said.
func (s *session) readInput(paths []string) ([]inputFile, error) {
	in := &input{s: s, origin: map[string]string{}}
	for _, p := range paths {
		if err := in.add(s.path(p), p); err != nil {
			return nil, err
		}
	}
	return in.files, nil
}

type input struct {
	s      *session
	files  []inputFile
	bytes  int64
	origin map[string]string
}

func (in *input) add(path, given string) error {
	info, err := os.Stat(path)
	if err != nil {
		return inputRefused(given, err)
	}
	if !info.IsDir() {
		return in.file(path, filepath.Base(path), given, info)
	}
	return filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return inputRefused(p, err)
		}
		if d.IsDir() {
			return nil
		}
		if !d.Type().IsRegular() {
			in.s.say("left out %s: it is no regular file", printable(p))
			return nil
		}
		rel, err := filepath.Rel(path, p)
		if err != nil {
			return inputRefused(p, err)
		}
		info, err := d.Info()
		if err != nil {
			return inputRefused(p, err)
		}
		return in.file(p, filepath.ToSlash(rel), p, info)
	})
}

func (in *input) file(path, name, given string, info fs.FileInfo) error {
	if err := api.CheckText("the path "+fmt.Sprintf("%q", printable(given)), name, 4<<10); err != nil {
		return err
	}
	if info.Size() > api.MaxFile {
		return inputTooLarge(given, fmt.Sprintf("%d MiB", info.Size()>>20))
	}
	if before, ok := in.origin[name]; ok {
		return domain.Refuse("usage", "two inputs have the same path in the workspace: "+printable(name),
			printable(before)+" and "+printable(given), "give the directory above both")
	}
	in.origin[name] = given
	if len(in.files) >= maxInputFiles {
		return inputTooMuch()
	}
	data, err := readInputFile(path)
	switch {
	case err != nil:
		return inputRefused(given, err)
	case len(data) > api.MaxFile: // it has no size beforehand, or has grown
		return inputTooLarge(given, fmt.Sprintf("more than %d MiB", api.MaxFile>>20))
	}
	in.bytes += int64(len(data))
	if in.bytes > maxInputBytes {
		return inputTooMuch()
	}
	in.files = append(in.files, inputFile{path: name, data: data})
	return nil
}

// readInputFile reads a file, or a pipe, as far as it may be long.
func readInputFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(f, api.MaxFile+1))
}

func inputTooMuch() error {
	return domain.Refuse("input-too-large", "this is more input than a run takes",
		fmt.Sprintf("the limit is %d files and %d MiB", maxInputFiles, maxInputBytes>>20), "give a smaller directory")
}

func inputTooLarge(path, size string) error {
	return domain.Refuse("file-too-large", printable(path)+" is too large for a workspace",
		fmt.Sprintf("%s, the limit is %d MiB", size, api.MaxFile>>20), "split it, or give the part that is needed")
}

func inputRefused(path string, err error) error {
	return domain.Refuse("input-unreadable", "the input "+printable(path)+" cannot be read", err.Error(), "name a file or directory that can be read")
}

// path makes what the user gave absolute.
func (s *session) path(p string) string {
	if p == "" || filepath.IsAbs(p) || s.Dir == "" {
		return p
	}
	return filepath.Join(s.Dir, p)
}
