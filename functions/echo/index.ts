import { makeLog } from '#shared/app/log.ts';
import { serve } from '#shared/app/serve.ts';

import { makeHandler } from './handler.ts';

const log = makeLog((line) => process.stdout.write(line), { function: 'echo' });

serve('echo', makeHandler(), log);
