/** Every route of both lines stands behind the gate, or is open on purpose. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Route } from '../../../../runtime/kit/web/answers/route.ts'
import {
  decideGate,
  type Role,
  SCOPES,
  scopesOf,
  type PageScope,
} from '../../../../runtime/kit/web/answers/rules/rights.ts'
import { PAGE_GATE } from '../../../../runtime/server/routes/rules/page-gate.ts'
import { createCurrentServer } from '../../../support/people/current-server.ts'
import { createEarlierServer } from '../../../support/server/earlier-server.ts'

const test = suite('gate')

/** What machines and monitoring ask without a cookie, and what everybody may read. */
const OPEN = [
  /^\/(healthz|version|openapi\.json|docs\/api|catalog\.toml|imager\.json)$/,
  /^\/(images|pxe|grub|boot|static|m|M)([/.-]|$)/,
  /^\/pxe-bootstrap\.ipxe$/,
  /^\/(ui)?$/,
  /^\/ui\/login(\/openid(\/(callback|finish))?)?$/,
]

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path}`

function findUngated(routes: readonly Route[]): readonly string[] {
  return routes
    .filter((route) => {
      const access = typeof route.access === 'function' ? route.access() : route.access
      if (access === 'open') return !OPEN.some((pattern) => pattern.test(route.path))
      if (access === 'page') return !Object.hasOwn(PAGE_GATE[route.path] ?? {}, route.method)
      return !SCOPES.includes(access)
    })
    .map(nameOf)
}

test('each route of the current line has its row, and each row its route', async () => {
  await using server = await createCurrentServer()
  await using earlier = await createEarlierServer()
  assert.equal(findUngated(server.routes), [])
  assert.equal(findUngated(earlier.routes), [])
  const known = new Set([...server.routes, ...earlier.routes].map(nameOf))
  const rows = Object.entries(PAGE_GATE).flatMap(([path, row]) =>
    Object.keys(row).flatMap((name) => (name === 'reach' ? [] : [`${name} ${path}`])),
  )
  assert.equal(
    rows.filter((row) => !known.has(row)),
    [],
  )
})

test('the gate lets nobody do what their role does not say', () => {
  const wanted: readonly PageScope[] = [...SCOPES, 'own']
  const passes = (role: Role | null) =>
    wanted.filter((each) => decideGate({ kind: 'person', name: 'anna', role }, each) === null)
  assert.equal(passes(null), ['own'])
  assert.equal(passes('look'), ['read', 'own'])
  assert.equal(passes('operate'), ['read', 'machines', 'flash', 'power', 'own'])
  assert.equal(passes('administrate'), wanted)
  for (const scope of SCOPES) {
    const scopes = [scope]
    const open = SCOPES.filter((each) => decideGate({ kind: 'token', scopes }, each) === null)
    assert.equal(open, scope === 'admin' ? SCOPES : [scope])
  }
  assert.is(decideGate({ kind: 'token', scopes: SCOPES }, 'own')?.why, 'forbidden')
  assert.is(decideGate({ kind: 'administrator' }, 'admin'), null)
  assert.equal(scopesOf(null), [])
})

test.run()
