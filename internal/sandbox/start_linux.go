package sandbox

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starts are handed to one thread that lives as long as this process: the kernel ends a child when the thread that
// started it ends (PR_SET_PDEATHSIG in prctl(2)), and Go ends threads as it likes.
var (
	starts  = make(chan start)
	starter sync.Once
)

type start struct {
	command *exec.Cmd
	result  chan error
}

// Start starts a command that the kernel kills when this process is over, in whatever way.
func Start(command *exec.Cmd) error {
	starter.Do(func() {
		go func() {
			runtime.LockOSThread()
			for s := range starts {
				s.result <- s.command.Start()
			}
		}()
	})
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	command.SysProcAttr.Setpgid = true // ^C goes to the terminal's process group, and is this process's to handle
	s := start{command, make(chan error)}
	starts <- s
	return <-s.result
}
