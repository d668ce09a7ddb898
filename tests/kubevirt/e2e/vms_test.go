package e2e

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"cozy-kubevirt/tests/kubevirt/internal/virthandler"
	v1 "kubevirt.io/api/core/v1"
)

// This file starts the VMs that the suite is pointed at by name, one for each way in which KubeVirt answers.

const (
	migratable    = "migratable"
	nonMigratable = "non-migratable"
	optedOut      = "opted-out" // of restarts, by LiveMigrate, and cannot migrate
	external      = "external"
	waiting       = "waiting"    // for its migration, by LiveMigrate
	lettingGo     = "letting-go" // by None
)

func startVMs(ctx context.Context) error {
	vms := []struct {
		name     string
		strategy v1.EvictionStrategy
		stuck    bool
	}{
		{name: migratable},
		{name: nonMigratable, stuck: true},
		{name: optedOut, strategy: v1.EvictionStrategyLiveMigrate, stuck: true},
		{name: external, strategy: v1.EvictionStrategyExternal},
		{name: waiting, strategy: v1.EvictionStrategyLiveMigrate},
		{name: lettingGo, strategy: v1.EvictionStrategyNone},
	}
	for _, vm := range vms {
		if err := createVM(ctx, vm.name, vm.strategy, vm.stuck); err != nil {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := cluster.Virt.VirtualMachineInstance(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) < len(vms) {
			return false, err
		}
		for _, vmi := range list.Items {
			// It has the version once virt-controller has seen it run, and is left alone from there on.
			if vmi.Status.Phase != v1.Running || vmi.Status.LauncherContainerImageVersion == "" {
				return false, nil
			}
		}
		return true, nil
	})
}

func createVM(ctx context.Context, name string, strategy v1.EvictionStrategy, stuck bool) error {
	always, memory, no := v1.RunStrategyAlways, resource.MustParse("64Mi"), false
	template := &v1.VirtualMachineInstanceTemplateSpec{Spec: v1.VirtualMachineInstanceSpec{
		Domain: v1.DomainSpec{
			Memory:  &v1.Memory{Guest: &memory},
			Devices: v1.Devices{AutoattachPodInterface: &no},
		},
	}}
	if strategy != "" {
		template.Spec.EvictionStrategy = &strategy
	}
	if stuck {
		template.ObjectMeta.Annotations = map[string]string{virthandler.NotMigratable: v1.VirtualMachineInstanceReasonDisksNotMigratable}
	}
	_, err := cluster.Virt.VirtualMachine(metav1.NamespaceDefault).Create(ctx, &v1.VirtualMachine{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.VirtualMachineSpec{RunStrategy: &always, Template: template},
	}, metav1.CreateOptions{})
	return err
}
