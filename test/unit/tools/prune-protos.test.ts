import { describe, expect, test } from 'vitest';

import { pruneProtos } from '#test/tools/prune-protos.ts';

const message = (...types: readonly string[]) => ({
  fields: Object.fromEntries(types.map((type, id) => [`field${id}`, { type, id }])),
});
const namespaces = (path: string, nested: object): object =>
  path
    .split('.')
    .toReversed()
    .reduce<object>((inner, name) => ({ nested: { [name]: inner } }), { nested });

const TYPES = {
  Instances: {
    methods: {
      Insert: { requestType: 'Insert', responseType: '.a.v1.Operation' },
      Route: { requestType: 'Router', responseType: 'Router' },
    },
  },
  Insert: { ...message('string', 'Part'), nested: { Part: message('b.Disk'), Unused: message('bytes') } },
  Operation: message('Operation', 'int64', 'Router.State'),
  Router: { ...message('string'), nested: { State: { values: { A: 0 } } } },
  Routers: { methods: { Get: { requestType: 'Router', responseType: 'Router' } } },
};
const protos = {
  nested: {
    a: {
      nested: { v1: { nested: TYPES }, v1beta: { nested: TYPES }, b: { nested: { Disk: message('bool') } } },
    },
    api: { nested: { http: { type: 'Http', id: 1, extend: 'x' } } },
  },
};

describe('pruning the description of an API', () => {
  test('what the methods reach stays, through nested types, full names and outer scopes, and the rest goes', () => {
    const { Instances, Insert, Operation } = TYPES;
    expect(pruneProtos(protos, { 'a.v1.Instances': ['Insert'] })).toEqual(
      namespaces('a', {
        v1: {
          nested: {
            Instances: { methods: { Insert: Instances.methods.Insert } },
            Insert: { fields: Insert.fields, nested: { Part: Insert.nested.Part } },
            Operation,
            // Not itself: only what is in it is named.
            Router: { nested: { State: TYPES.Router.nested.State } },
          },
        },
        b: { nested: { Disk: message('bool') } },
      }),
    );
  });

  test('all methods of a service can be kept', () => {
    expect(pruneProtos(protos, { 'a.v1.Routers': 'all' })).toEqual(
      namespaces('a.v1', { Routers: TYPES.Routers, Router: { fields: TYPES.Router.fields } }),
    );
  });

  test('a layout that is not known is an error, not a broken bundle', () => {
    expect(() => pruneProtos({ nested: {} }, { 'a.v1.Instances': 'all' })).toThrow(
      'no service a.v1.Instances',
    );
    expect(() => pruneProtos(protos, { 'a.v1.Insert': 'all' })).toThrow('no service a.v1.Insert');
    expect(() => pruneProtos(protos, { 'a.v1.Instances': ['Delete'] })).toThrow('no method Delete');
    const broken = namespaces('a.v1', { Routers: TYPES.Routers });
    expect(() => pruneProtos(broken, { 'a.v1.Routers': 'all' })).toThrow(
      'no Router, which a.v1.Routers names',
    );
  });
});
