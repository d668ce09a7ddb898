package source

// This file names the fields of each kind that a preview needs. A dump of 10,000 VMs is mostly of other fields, and
// parsing YAML is by far what takes longest.

// fields are the fields of an object to keep: nil keeps everything below. Lists are looked through.
type fields map[string]fields

var (
	owners   = fields{"kind": nil, "name": nil, "controller": nil}
	identity = fields{"name": nil, "namespace": nil, "labels": nil, "ownerReferences": owners, "creationTimestamp": nil,
		"deletionTimestamp": nil, "generation": nil}
	conditions = fields{"type": nil, "status": nil, "reason": nil}
	placement  = fields{"evictionStrategy": nil, "nodeSelector": nil, "affinity": {"nodeAffinity": nil}, "tolerations": nil,
		"volumes": {"name": nil, "persistentVolumeClaim": nil, "dataVolume": nil, "ephemeral": nil}}

	kubeVirtFields = object(fields{"configuration": {"evictionStrategy": nil, "migrations": nil}, "workloadUpdateStrategy": nil}, nil)
	vmFields       = object(fields{"running": nil, "runStrategy": nil, "template": {"spec": placement}}, fields{})
	vmiFields      = object(placement, fields{
		"phase": nil, "nodeName": nil, "evacuationNodeName": nil, "migratedVolumes": nil,
		"migrationState": {"sourceState": nil, "targetState": nil}, "interfaces": {"ipAddress": nil}, "conditions": conditions})
	migrationFields = object(fields{"vmiName": nil}, fields{"phase": nil})
	nodeFields      = object(fields{"taints": nil, "unschedulable": nil}, fields{})
	podFields       = fields{
		"apiVersion": nil, "kind": nil,
		"metadata": {"name": nil, "namespace": nil, "labels": nil, "ownerReferences": owners, "creationTimestamp": nil,
			"deletionTimestamp": nil, "annotations": {"kubevirt.io/domain": nil}},
		"spec":   {"nodeName": nil},
		"status": {"phase": nil, "conditions": {"type": nil, "status": nil}},
	}
	claimFields  = object(fields{"volumeName": nil}, fields{})
	volumeFields = object(fields{"nodeAffinity": nil}, fields{})
	budgetFields = object(nil, nil)
)

func object(spec, status fields) fields {
	return fields{"apiVersion": nil, "kind": nil, "metadata": identity, "spec": spec, "status": status}
}
