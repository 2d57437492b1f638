import { http } from '@google-cloud/functions-framework';

import { toFramework } from '#shared/app/http.ts';
import { makeLog } from '#shared/app/log.ts';

import { makeHandler } from './handler.ts';

const log = makeLog((line) => process.stdout.write(line), { function: 'echo' });

http('echo', toFramework(makeHandler(), log));
