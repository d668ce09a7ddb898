package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheLastBatchTakesWhatTheOthersLeave(t *testing.T) {
	p := Platform{BatchSize: 10, BatchInterval: time.Minute}
	for evictions, batches := range map[int]int{0: 0, 1: 1, 9: 1, 10: 1, 11: 2, 20: 2, 21: 3} {
		var all []Upgraded
		for range evictions {
			all = append(all, Upgraded{Outcome: Restarts, InBatch: true})
		}
		pace := PaceOf(p, all)
		assert.Equal(t, batches, pace.Batches, "%d evictions", evictions)
		assert.Equal(t, time.Duration(max(0, batches-1))*time.Minute, pace.AtLeast, "%d evictions", evictions)
		assert.Equal(t, max(1, batches), pace.LastBatch(p), "%d evictions", evictions)
	}
}

func TestRefusedVMsLeaveNoLastBatchOnceThereIsMoreThanOne(t *testing.T) {
	p := Platform{BatchSize: 10}
	assert.Equal(t, 1, Pace{Evictions: 5, Refused: 5, Batches: 1}.LastBatch(p))
	assert.Equal(t, 0, Pace{Evictions: 5, Refused: 6, Batches: 1}.LastBatch(p))
}

func TestVMsThatFitIntoOneBatchHaveTheirTurnInIt(t *testing.T) {
	p := Platform{BatchSize: 10, BatchInterval: time.Minute}
	for name, c := range map[string]struct{ evictions, refused, last int }{
		"fewer":                        {8, 1, 1},
		"just as many":                 {8, 2, 1},
		"one more, which is refused":   {8, 3, 0},
		"one more, which leaves":       {11, 0, 2},
		"two batches to the last seat": {20, 0, 2},
	} {
		var all []Upgraded
		for range c.evictions {
			all = append(all, Upgraded{Restarts, "", true})
		}
		for range c.refused {
			all = append(all, Upgraded{Blocks, "", true})
		}
		pace := PaceOf(p, all)
		assert.Equal(t, c.last, pace.LastBatch(p), name)
		assert.Equal(t, time.Duration((c.evictions+9)/10-1)*time.Minute, pace.AtLeast, name)
	}
}
