import { describe, expect, test } from 'vitest';

import { listDisks, listFleet, type PageSource } from '#shared/compute/fleet.ts';

const instance = (name: string, zone: string, installation = 'prod'): Record<string, unknown> => ({
  id: name,
  name,
  zone: `projects/p/zones/${zone}`,
  status: 'RUNNING',
  labels: { 'egress-installation': installation },
});
const nothing = { warning: { code: 'NO_RESULTS_ON_PAGE' } };

/** Serves the pages in turn and remembers what it was asked. */
const source = (...pages: readonly unknown[]): { asked: (string | undefined)[][]; read: PageSource } => {
  const asked: (string | undefined)[][] = [];
  return {
    asked,
    read: (filter, token) => {
      asked.push([filter, token]);
      const page = pages[asked.length - 1];
      return page instanceof Error ? Promise.reject(page) : Promise.resolve(page);
    },
  };
};

describe('the list of an installation', () => {
  test('row 48: reads all pages, filtered with a quoted literal', async () => {
    const pages = source(
      { items: { 'zones/a': { instances: [instance('prod-1', 'a')] } }, nextPageToken: 't1' },
      {
        items: { 'zones/b': { instances: [instance('prod-2', 'b')] }, 'zones/a': nothing },
        nextPageToken: '',
      },
    );
    const listing = await listFleet(pages.read, 'p', { installation: 'prod' });
    expect(listing.machines.map(({ name }) => name)).toEqual(['prod-1', 'prod-2']);
    expect(listing).toMatchObject({ unknownZones: [], partial: false });
    expect(pages.asked).toEqual([
      ['labels.egress-installation = "prod"', undefined],
      ['labels.egress-installation = "prod"', 't1'],
    ]);
  });

  test('row 79: of one Proxy is asked for by both labels, and checked by both', async () => {
    const of = (uid: string, name: string, installation = 'prod') => ({
      ...instance(name, 'a'),
      labels: { 'egress-installation': installation, 'egress-proxy-uid': uid },
    });
    const found = [of('u-1', 'mine'), of('u-2', 'other'), of('u-1', 'theirs', 'dev'), instance('none', 'a')];
    const pages = source({ items: { 'zones/a': { instances: found } } });
    const { machines } = await listFleet(pages.read, 'p', { installation: 'prod', uid: 'u-1' });
    expect(machines.map(({ name }) => name)).toEqual(['mine']);
    expect(pages.asked).toEqual([
      ['(labels.egress-installation = "prod") AND (labels.egress-proxy-uid = "u-1")', undefined],
    ]);
  });

  test('row 79: what the filter let through is checked again', async () => {
    const others = [instance('dev-1', 'a', 'dev'), { ...instance('x', 'a'), labels: {} }];
    const pages = source({ items: { 'zones/a': { instances: [...others, instance('prod-1', 'a')] } } });
    const { machines } = await listFleet(pages.read, 'p', { installation: 'prod' });
    expect(machines.map(({ name }) => name)).toEqual(['prod-1']);
  });

  test.each([
    ['a warning', { items: { 'zones/b': { warning: { code: 'UNREACHABLE' } } } }],
    ['a warning that we do not know', { items: { 'zones/b': { warning: { code: 'SOMETHING' } } } }],
    [
      'a warning beside machines',
      { items: { 'zones/b': { instances: [], warning: { code: 'UNREACHABLE' } } } },
    ],
    ['unreachables', { items: {}, unreachables: ['projects/p/zones/b'] }],
    ['unreachables, short', { items: {}, unreachables: ['zones/b'] }],
  ])('row 47: a zone that is named in %s is unknown, not empty', async (_, page) => {
    const listing = await listFleet(source(page).read, 'p', { installation: 'prod' });
    expect(listing).toEqual({ machines: [], unknownZones: ['b'], partial: false });
  });

  test.each([
    ['a region', { items: {}, unreachables: ['regions/europe-west1'] }],
    ['the whole list', { items: {}, warning: { code: 'PARTIAL_SUCCESS' } }],
  ])('row 47: when %s could not be seen nothing follows from absence', async (_, page) => {
    expect(await listFleet(source(page).read, 'p', { installation: 'prod' })).toMatchObject({
      partial: true,
    });
  });

  test('row 48: a page that fails makes the list fail', async () => {
    const pages = source({ items: {}, nextPageToken: 't1' }, new Error('503'));
    await expect(listFleet(pages.read, 'p', { installation: 'prod' })).rejects.toThrow('503');
  });

  test.each([
    ['nothing', undefined],
    ['something else', { items: { 'zones/a': { instances: [{}] } } }],
  ])('a reply that is %s makes the list fail', async (_, page) => {
    await expect(listFleet(source(page).read, 'p', { installation: 'prod' })).rejects.toMatchObject({
      code: 'Transient',
    });
  });

  test('a list that repeats its page fails instead of running on', async () => {
    const page = { items: {}, nextPageToken: 't' };
    await expect(
      listFleet(source(page, page, page).read, 'p', { installation: 'prod' }),
    ).rejects.toMatchObject({
      code: 'Transient',
    });
  });
});

const disk = (name: string, zone: string, change: object = {}): Record<string, unknown> => ({
  id: name,
  name,
  zone: `projects/p/zones/${zone}`,
  labels: { 'egress-installation': 'prod' },
  ...change,
});

describe('the list of the disks of an installation', () => {
  test('row 48: has those of all pages that nothing uses, filtered with a quoted literal', async () => {
    const used = disk('prod-3', 'b', { users: ['projects/p/zones/b/instances/prod-3'] });
    const pages = source(
      { items: { 'zones/a': { disks: [disk('prod-1', 'a')] }, 'regions/r': nothing }, nextPageToken: 't1' },
      { items: { 'zones/b': { disks: [used, disk('prod-2', 'b')] }, 'zones/a': nothing } },
    );
    const listing = await listDisks(pages.read, { installation: 'prod' });
    expect(listing.leftovers.map(({ name, zone }) => `${zone}/${name}`)).toEqual(['a/prod-1', 'b/prod-2']);
    expect(listing).toMatchObject({ unknownZones: [], partial: false });
    expect(pages.asked).toEqual([
      ['labels.egress-installation = "prod"', undefined],
      ['labels.egress-installation = "prod"', 't1'],
    ]);
  });

  test('row 79: what the filter let through is checked again', async () => {
    const others = [
      disk('dev-1', 'a', { labels: { 'egress-installation': 'dev' } }),
      disk('x', 'a', { labels: {} }),
    ];
    const pages = source({ items: { 'zones/a': { disks: [...others, disk('prod-1', 'a')] } } });
    expect((await listDisks(pages.read, { installation: 'prod' })).leftovers.map(({ name }) => name)).toEqual(
      ['prod-1'],
    );
  });

  test('row 47: a zone that could not be seen is unknown, and a region makes the whole list so', async () => {
    const warning = { code: 'UNREACHABLE' };
    const zone = await listDisks(source({ items: { 'zones/b': { warning } } }).read, {
      installation: 'prod',
    });
    expect(zone).toEqual({ leftovers: [], unknownZones: ['b'], partial: false });
    const region = await listDisks(source({ items: { 'regions/r': { warning } } }).read, {
      installation: 'prod',
    });
    expect(region).toMatchObject({ partial: true });
  });

  test('row 48: fails with any of its pages, and with a disk that cannot be read', async () => {
    const half = source({ items: {}, nextPageToken: 't1' }, new Error('503'));
    await expect(listDisks(half.read, { installation: 'prod' })).rejects.toThrow('503');
    const odd = source({ items: { 'zones/a': { disks: [{}] } } });
    await expect(listDisks(odd.read, { installation: 'prod' })).rejects.toMatchObject({ code: 'Transient' });
  });
});
