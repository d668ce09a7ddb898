package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const childOf = "SANDBOX_TEST_CHILD_OF"

func init() {
	if os.Getenv(childOf) == "" {
		return
	}
	child := exec.Command("sleep", "1000")
	if err := Start(child); err != nil {
		panic(err)
	}
	fmt.Println(child.Process.Pid)
	_ = child.Wait()
}

func TestStartedProcessEndsWithItsParent(t *testing.T) {
	parent, says := again(t, childOf)
	child, err := strconv.Atoi(says())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(child, 0), "the child runs")

	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return gone(t, folder+"-none", child) }, time.Minute, 10*time.Millisecond, "the child is gone")
}
