/** The search of everything: what it finds, by which words, and for whom. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addPerson, asForm, createCurrentServer } from '#test/support/people/current-server.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { asJson } from '#test/support/server/server.ts'
import { disksOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the search of everything')

type Ask = (path: string, init?: RequestInit) => Promise<Response>

/** The options of the dialog: where each leads, and what it says. */
async function find(ask: Ask, text: string) {
  const answer = await ask(`/ui/find?list=1&q=${encodeURIComponent(text)}`)
  assert.is(answer.status, 200)
  return [...(await answer.text()).matchAll(/href="([^"]*)"\s*>([^]*?)<\/a/g)].map(
    ([, href = '', title = '']) =>
      `${href} ${title
        .replace(/<[^>]*>/g, ' ')
        .trim()
        .replace(/\s+/g, ' ')}`.replaceAll('&quot;', '"'),
  )
}

/** The MACs that the search of the machines list finds. */
const list = async (ask: Ask, q: string) => {
  const found = await (await ask(`/machines?q=${encodeURIComponent(q)}`)).json()
  return found.map((machine: { mac: string }) => machine.mac)
}

const includes = (found: readonly string[], row: string) =>
  assert.ok(found.includes(row), `${row} is not in:\n${found.join('\n')}`)

test('finds machines, labels, images, settings, people, pages and actions', async () => {
  await using server = await createCurrentServer()
  const admin = await server.operator()
  const mac = '52:54:00:a1:00:07'
  await server.request(`/pxe/${mac}/inventory`, asJson({ disks: disksOf(7) }))
  await server.request(`/pxe/${mac}`)
  await server.request(`/pxe/${mac}/inventory`, asJson({ disks: disksOf(7) }))
  await admin(`/machines/${mac}`, asJson({ name: 'Bench 7', labels: ['rack-1', 'lab'] }, 'PUT'))
  await admin('/machines/52:54:00:a1:00:08', asJson({ labels: ['rack-1'] }, 'PUT'))
  const otto = await addPerson(server, 'otto', 'operate')
  const lea = await addPerson(server, 'lea', 'look')
  const machine = `/ui/machines/${mac} Bench 7 ${mac} · lab · rack-1`
  for (const text of [
    mac,
    '52-54-00-A1-00-07',
    '525400a10007',
    '5254.00a1.0007',
    '00:07',
    'bench 7',
    serialOf(7),
    'ZC140007',
  ]) {
    assert.is((await find(admin, text))[0], machine, text)
  }
  includes(await find(admin, 'rack'), '/ui/machines?q=label%3A%22rack-1%22 rack-1 2 machines')
  includes(
    await find(admin, 'loop limit'),
    '/ui/settings#pxe.loop_limit Boots until a loop is suspected pxe.loop_limit',
  )
  includes(await find(admin, 'otto'), '/ui/events?person=otto What otto did Operator')
  includes(await find(admin, 'dhcp'), '/ui/dhcp DHCP')
  includes(await find(admin, 'netboot'), '/ui/netboot Network boot')
  includes(await find(admin, 'first boot'), '/ui/first-boot Templates')
  includes(await find(admin, 'add person'), '/ui/people/add Add a person')
  for (const [text, row] of [
    ['restart', '/ui/settings#power.networks Set up power control'],
    ['backup', '/ui/backups Restore a backup'],
    ['settings time zone', '/ui/settings#display.timezone Time zone display.timezone'],
    ['sso', '/ui/people/provider Set up login with a provider'],
    ['arm', '/ui/machines Arm machines Select them, then Actions'],
    ['arm bench', `/ui/machines/${mac}#intent Flash Bench 7`],
  ] as const)
    includes(await find(admin, text), row)
  assert.not.match((await find(admin, 'restart')).join('\n'), 'Restart machines')
  includes(await find(admin, 'flash bench'), `/ui/machines/${mac}#intent Flash Bench 7`)
  includes(await find(admin, 'bench 7'), `/ui/machines/${mac}/timeline Timeline of Bench 7`)

  // The forms have their requests as commands, in browsers that show them.
  assert.not.match(await (await admin(`/ui/machines/${mac}`)).text(), 'curl -fsS')
  const { cookie } = await server.logIn({ password: PASSWORD })
  const curious = server.withCookie(`${cookie}; flasher-api-calls=on`)
  const form = await (await curious(`/ui/machines/${mac}`)).text()
  assert.match(form, /curl -fsS -X PUT [^ ]*\/machines\/52:54:00:a1:00:07/)
  const bulk = { action: 'label', all: '1', q: 'label:rack-1', add: 'x', remove: '' }
  const preview = await (await curious('/ui/machines/bulk', asForm(bulk))).text()
  assert.match(preview.replaceAll('&quot;', '"'), /"q": "label:rack-1",\s*"parameters": \{/)

  // Each role sees what is open to it, and no more.
  const forOtto = await find(otto, '')
  includes(forOtto, '/ui/machines#add Add a machine')
  assert.not.match(forOtto.join('\n'), /Add a person|Make a backup|Settings/)
  const forLea = await find(lea, '')
  assert.not.match(forLea.join('\n'), /Add a machine|Settings/)
  includes(forLea, '/ui/account#tokens Create an API token')
  assert.equal(await find(lea, 'flash bench'), [])
  assert.equal(await find(lea, 'restart'), [])
  assert.equal(await find(otto, 'restart'), [])
  assert.not.match((await find(lea, 'bench 7')).join('\n'), /Flash Bench|Configure/)
  for (const ask of [otto, lea]) {
    assert.equal(await find(ask, 'loop limit'), [])
    assert.equal(await find(ask, 'otto'), [])
  }

  // A page shows the same where there are no scripts.
  const page = await (await lea('/ui/find?q=bench+7')).text()
  assert.match(page, `href="/ui/machines/${mac}"`)
  assert.match(page, /<form[^>]*class="find"[^>]*action="\/ui\/find"/)
  const evil = '"><img src=x onerror=alert(1)>'
  const nothing = await (await admin(`/ui/find?q=${encodeURIComponent(evil)}`)).text()
  assert.match(nothing, 'No results')
  assert.not.match(nothing, '<img')
  assert.is((await server.request('/ui/find?list=1&q=bench')).status, 303)
})

test('single keys can be switched off, and on again', async () => {
  await using server = await createCurrentServer()
  const admin = await server.operator()
  assert.match(await (await admin('/ui/dashboard')).text(), 'data-keys="/ui/keys"')
  const page = await (await admin('/ui/keys?back=/ui/runs')).text()
  assert.match(page, 'Switch single keys off')
  assert.is(page.match(/<h\d[^>]*>\s*Keyboard shortcuts\s*<\/h\d>/g)?.length, 1)
  const dialog = await (await admin('/ui/keys', { headers: { 'hx-request': 'true' } })).text()
  assert.match(dialog, /<section[^>]* id="question">\s*<h2 id="dialog-title">Keyboard shortcuts</)
  assert.match(page, 'href="/ui/runs" data-close')
  const off = await admin('/ui/keys', asForm({ keys: 'off', back: '//evil.example/' }))
  assert.is(off.headers.get('location'), '/ui/dashboard')
  const cookie = /^[^;]*/.exec(off.headers.get('set-cookie') ?? '')?.[0] ?? ''
  assert.is(cookie, 'flasher-keys=off')
  const { cookie: session } = await server.logIn({ password: PASSWORD })
  const quiet = server.withCookie(`${session}; ${cookie}`)
  assert.not.match(await (await quiet('/ui/dashboard')).text(), 'data-keys="/ui/keys"')
  assert.match(await (await quiet('/ui/keys')).text(), 'Switch single keys on')
  const on = await admin('/ui/keys', asForm({ keys: 'on', back: '/ui/runs' }))
  assert.match(on.headers.get('set-cookie') ?? '', /^flasher-keys=; Path=\/; Max-Age=0/)
})

test('a machine is found by the serial number of its system or board, by those who may see it', async () => {
  await using server = await createCurrentServer()
  const admin = await server.operator()
  const mac = '52:54:00:a1:00:09'
  const core = { id: 'core', class: 'bus', serial: 'PVBK0A1' }
  const lshw = { id: 'box', class: 'system', serial: 'CZJ1234ABC', children: [core] }
  await server.request(`/pxe/${mac}`)
  const told = asJson({ disks: disksOf(9), lshw })
  assert.is((await server.request(`/pxe/${mac}/inventory`, told)).status, 204)
  await admin(`/machines/${mac}`, asJson({ name: 'Bench 9', labels: ['lab'] }, 'PUT'))
  for (const [text, serial] of [
    ['CZJ1234ABC', 'CZJ1234ABC'],
    ['czj1234', 'CZJ1234ABC'],
    ['pvbk0a1', 'PVBK0A1'],
  ] as const) {
    const found = await find(admin, text)
    assert.is(found[0], `/ui/machines/${mac} Bench 9 ${mac} · ${serial} · lab`, text)
  }
  assert.equal(await list(admin, 'serial:CZJ*'), [mac])
  assert.equal(await list(admin, `serial:${serialOf(9)}`), [mac])
  assert.equal(await list(admin, 'serial:CZJ'), [])
  // A report without a tree says nothing of it; the next one with one does.
  await server.request(`/pxe/${mac}/inventory`, asJson({ disks: disksOf(9) }))
  assert.equal(await list(admin, 'serial:PVBK0A1'), [mac])
  const other = asJson({ disks: disksOf(9), lshw: { ...lshw, serial: 'NEW-1', children: [] } })
  await server.request(`/pxe/${mac}/inventory`, other)
  assert.equal(await list(admin, 'PVBK0A1'), [])
  assert.equal(await list(admin, 'serial:NEW-1'), [mac])
  const lab = await addPerson(server, 'lab', 'operate', ['lab'])
  const rack = await addPerson(server, 'rack', 'operate', ['rack-1'])
  assert.equal(await list(lab, 'NEW-1'), [mac])
  assert.equal(await list(rack, 'NEW-1'), [])
  assert.ok(!(await find(rack, 'NEW-1')).some((row) => row.includes(mac)))
})

test.run()
