// Package git runs git.
package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Run runs git in a folder, with more variables in its environment, and returns what it prints, trimmed.
func Run(ctx context.Context, dir string, environment []string, arguments ...string) (string, error) {
	out, err := Output(ctx, dir, environment, arguments...)
	return strings.TrimSpace(string(out)), err
}

// Output is Run to the byte.
func Output(ctx context.Context, dir string, environment []string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "git", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
