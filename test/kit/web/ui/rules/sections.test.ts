/** Each page of the current line lights one door and, where that has several, one of its tabs; who may not open a page sees neither. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findTab, holds, listOpenSections, SECTIONS } from '#kit/web/ui/rules/sections.ts'
import { EXPECTED } from '#test/support/people/expected-routes.ts'

const test = suite('sections')

const DOORS = ['Machines', 'Batches', 'Runs', 'Images', 'Network boot', 'Events', 'Settings']

/** `Settings: People`; null: none. */
function light(path: string): string | null {
  const tab = findTab(SECTIONS, path)
  const sections = tab === null ? [] : SECTIONS.filter((each) => holds(each, tab.href))
  assert.ok(sections.length <= 1, path)
  const [section] = sections
  return section === undefined
    ? null
    : section.tabs
      ? `${section.title}: ${tab?.title}`
      : section.title
}

test('there are seven doors, and the dashboard behind the name', () => {
  assert.equal(
    SECTIONS.map(({ title }) => title),
    ['Dashboard', ...DOORS],
  )
  assert.equal(SECTIONS.map(({ isHome }) => isHome === true).indexOf(true), 0)
  const keys = SECTIONS.map(({ key }) => key)
  assert.is(new Set(keys).size, keys.length)
})

test('each page belongs to one', () => {
  const mac = '/ui/machines/52:54:00:00:00:01'
  for (const [path, expected] of [
    ['/ui/dashboard', 'Dashboard'],
    ['/ui/machines', 'Machines'],
    [mac, 'Machines'],
    [`${mac}/timeline`, 'Machines'],
    ['/ui/machines/labels', 'Machines'],
    [`${mac}/runs/c0ffee00-0002`, 'Runs'],
    ['/ui/runs/compare', 'Runs'],
    ['/ui/batches/20261128-1', 'Batches'],
    ['/ui/cache', 'Images: Images'],
    ['/ui/channels/stable/remove', 'Images: Channels'],
    ['/ui/first-boot/web', 'Images: Templates'],
    ['/ui/netboot', 'Network boot: Live system'],
    ['/ui/netboot/tftp', 'Network boot: TFTP check'],
    ['/ui/dhcp', 'Network boot: DHCP'],
    ['/ui/boot-entries/memtest/remove', 'Network boot: Boot entries'],
    ['/ui/events', 'Events'],
    ['/ui/settings', 'Settings: General'],
    ['/ui/people/1', 'Settings: People'],
    ['/ui/notifications/add/webhook', 'Settings: Notifications'],
    ['/ui/backups/1/restore', 'Settings: Backups'],
    ['/ui/account/tokens/1/revoke', 'Settings: Account'],
    ['/machines/52:54:00:00:00:01', 'Machines'],
    ['/ui/find', null],
    ['/ui/keys', null],
    ['/ui/peopled', null],
  ] as const)
    assert.is(light(path), expected, path)
  // `/ui/boot` and `/ui/images` are of the earlier line.
  const unlit = [...EXPECTED.server.keys()].flatMap((name) => {
    const [method, path = ''] = name.split(' ')
    const isPage =
      method === 'GET' && /^\/ui\/./.test(path) && !/^\/ui\/(login|boot|images)/.test(path)
    return isPage && light(path) === null ? [path] : []
  })
  assert.equal(unlit.toSorted(), ['/ui/find', '/ui/keys'])
})

test('what somebody may not open is not shown, and a section leads to its first open page', () => {
  const open = ['/ui/machines', '/ui/backups', '/ui/account', '/ui/dhcp']
  assert.equal(
    listOpenSections(SECTIONS, (path) => open.includes(path)).map(({ title, href, tabs = [] }) => [
      title,
      href,
      ...tabs.map((tab) => tab.title),
    ]),
    [
      ['Machines', '/ui/machines', 'Machines'],
      ['Network boot', '/ui/dhcp', 'DHCP'],
      ['Settings', '/ui/backups', 'Backups', 'Account'],
    ],
  )
})

test.run()
