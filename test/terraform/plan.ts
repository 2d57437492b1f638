/** The plan that `terraform test -json -verbose` prints, as far as it is judged here. */

import { z } from 'zod';

const values = z.record(z.string(), z.unknown());
const resource = z.object({
  address: z.string(),
  type: z.string(),
  change: z.object({
    actions: z.array(z.string()),
    after: values.nullable(),
    after_unknown: values.catch({}),
  }),
});
export type PlannedResource = z.infer<typeof resource>;

const message = z.object({
  type: z.literal('test_plan'),
  '@testrun': z.string(),
  test_plan: z.object({ resource_changes: z.array(resource) }),
});

const jsonOf = (line: string): unknown => {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
};

/** Resources that the named run would create. Throws when the output has no such plan. */
export const planOf = (output: string, run: string): readonly PlannedResource[] => {
  for (const line of output.split('\n')) {
    const parsed = message.safeParse(jsonOf(line));
    if (parsed.success && parsed.data['@testrun'] === run) return parsed.data.test_plan.resource_changes;
  }
  throw new Error(`terraform printed no plan of the run ${run}`);
};

/** Lines that tell a person how each run ended. */
export const resultsOf = (output: string): readonly string[] => {
  const lines = z.object({
    type: z.enum(['test_run', 'test_summary', 'diagnostic']),
    '@message': z.string(),
    test_run: z.object({ status: z.string().optional() }).optional(),
    diagnostic: z.object({ detail: z.string() }).optional(),
  });
  return output.split('\n').flatMap((line) => {
    const parsed = lines.safeParse(jsonOf(line));
    if (!parsed.success) return [];
    const { type, test_run: run, diagnostic } = parsed.data;
    if (type === 'test_run' && run?.status === undefined) return [];
    return [[parsed.data['@message'], diagnostic?.detail ?? ''].join('\n').trimEnd()];
  });
};
