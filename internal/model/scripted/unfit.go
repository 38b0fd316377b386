package scripted

import (
	"errors"
	"io/fs"

	"github.com/rollcall-dev/rollcall/domain"
)

// Unfit is the refusal of a script that cannot be read or served.
func Unfit(err error) error {
	try := "mend the line and column it names, or choose another with --model"
	if _, noFile := errors.AsType[*fs.PathError](err); noFile {
		try = "check the path behind scripted:, which counts from where the command runs"
	}
	return domain.Refuse("script-invalid", "the script of the model cannot be served", err.Error(), try)
}
