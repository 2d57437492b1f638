import { machineSpec } from '#test/compute/builders.ts';

import { startCompute } from './compute-fixture.ts';
import { machineProviderContract } from './machine-provider-contract.ts';

machineProviderContract('Compute Engine', async () => {
  const compute = await startCompute();
  const { control } = compute.standIn;
  return {
    provider: compute.provider('prod'),
    installation: 'prod',
    stranger: { provider: compute.provider('staging'), installation: 'staging' },
    zone: 'europe-west1-b',
    spec: machineSpec,
    loseNextCreateReply: () => {
      control.addFault({ kind: 'lostResponse', method: 'instances.insert', count: 1 });
    },
    failNextGet: () => {
      control.addFault({ kind: 'status', statuses: [503], method: 'instances.get' });
    },
    leaveBehind: (name) => {
      control.addFault({ kind: 'keptDisk', namePrefix: name, count: 1 });
    },
    stop: () => compute.stop(),
  };
});
