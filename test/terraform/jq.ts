/** The one form of jq in the README, for machines that have no jq: `jq -r --arg NAME VALUE '.[$NAME]'` on an object of texts. */

import { text } from 'node:stream/consumers';

import { z } from 'zod';

const [raw, arg, name = '', value = '', filter] = process.argv.slice(2);
if (raw !== '-r' || arg !== '--arg' || filter !== `.[$${name}]`) throw new Error('jq: not understood');
const given = z.record(z.string(), z.string()).parse(JSON.parse(await text(process.stdin)));
process.stdout.write(`${given[value] ?? 'null'}\n`);
