import { describe, expect, test } from 'vitest';

import { pruneProtos } from '#test/tools/prune-protos.ts';

const message = (...types: readonly string[]) => ({
  fields: Object.fromEntries(types.map((type, id) => [`field${id}`, { type, id }])),
});

const protosOf = (types: Readonly<Record<string, unknown>>) => ({
  nested: {
    google: {
      nested: {
        api: { nested: { Http: message('string') } },
        cloud: { nested: { compute: { nested: { v1: { nested: types }, v1beta: { nested: types } } } } },
      },
    },
  },
});

const TYPES = {
  Instances: {
    methods: { Insert: { requestType: 'Insert', responseType: '.google.cloud.compute.v1.Operation' } },
  },
  Insert: { ...message('string'), nested: { Part: message('Disk') } },
  Operation: message('Operation', 'string'),
  Disk: message('Enum'),
  Enum: { values: { A: 0 } },
  Routers: { methods: { Get: { requestType: 'Router', responseType: 'Router' } } },
  Router: message('string'),
};

describe('pruning the description of the Compute API', () => {
  test('what the services reach stays, through nested types and full names, and the rest goes', () => {
    const { Routers: _service, Router: _type, ...kept } = TYPES;
    const pruned = pruneProtos(protosOf(TYPES), ['Instances']);
    const { v1beta: _beta, ...versions } = protosOf(kept).nested.google.nested.cloud.nested.compute.nested;
    expect(pruned).toEqual({
      nested: {
        google: {
          nested: {
            api: protosOf({}).nested.google.nested.api,
            cloud: { nested: { compute: { nested: versions } } },
          },
        },
      },
    });
  });

  test('a layout that is not known is an error, not a broken bundle', () => {
    expect(() => pruneProtos({ nested: {} }, ['Instances'])).toThrow(/no google\.cloud\.compute/);
    expect(() => pruneProtos(protosOf({}), ['Instances'])).toThrow(/no service Instances/);
  });
});
