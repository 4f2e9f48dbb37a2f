/** Machines as CSV, out and in again: what a file may change, for whom, and what is applied of a preview. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addSaved,
  parseSaved,
  renderSaved,
  type SavedSearch,
} from '#server/current/machines/list-tools.ts'
import { isUsual, parseColumns, renderColumns } from '#server/current/view/machine-row.ts'
import { CANARY, hideCanaries, INSIDE, OUTSIDE } from '#test/support/people/canaries.ts'
import { addPerson, asForm, createCurrentServer } from '#test/support/people/current-server.ts'
import { asJson, readJson } from '#test/support/server/server.ts'

const test = suite('names and labels from a file')

type Ask = (path: string, init?: RequestInit) => Promise<Response>

const [ONE, TWO, THREE] = ['52:54:00:a1:00:01', '52:54:00:a1:00:02', '52:54:00:a1:00:03']

/** As bytes: a form that is made while it is sent cannot be refused on its way. */
async function upload(text: string, name = 'file'): Promise<RequestInit> {
  const form = new FormData()
  form.append('file', name === 'file' ? new File([text], 'machines.csv') : new File([], ''))
  form.append('text', name === 'text' ? text : '')
  const encoded = new Response(form)
  const headers = { 'content-type': encoded.headers.get('content-type') ?? '' }
  return { method: 'POST', headers, body: await encoded.arrayBuffer() }
}

const shownOf = async (answer: Response) => {
  const page = await answer.text()
  const text = page.replace(/<script[^]*?<\/script>|<[^>]*>/g, ' ').replace(/\s+/g, ' ')
  return { text, digest: /name="digest" value="([^"]*)"/.exec(page)?.[1] ?? null }
}

const preview = async (ask: Ask, text: string, by = 'file') => {
  const answer = await ask('/ui/machines/file', await upload(text, by))
  assert.is(answer.status, 200)
  return await shownOf(answer)
}

const apply = async (ask: Ask, digest: string | null) =>
  await shownOf(await ask('/ui/machines/file/apply', asForm({ digest: digest ?? '' })))

const identityOf = async (ask: Ask, mac: string) => {
  const { name, labels } = await readJson(ask(`/machines/${mac}`))
  return { name, labels }
}

test('a table goes out, comes back, is shown, applied, on record and undone', async () => {
  await using server = await createCurrentServer()
  const admin = await server.operator()
  const put = (mac: string, name: string | null, labels: readonly string[]) =>
    admin(`/machines/${mac}`, asJson({ name, labels }, 'PUT'))
  await put(ONE, '=HYPERLINK("x")', ['lab', 'rack-1', 'slot-4'])
  await put(TWO, 'two', [])
  await put(THREE, null, ['other'])
  const report = { disks: [], lshw: { id: 'x', class: 'system', serial: 'SN-1', children: [] } }
  await server.request(`/pxe/${ONE}/inventory`, asJson(report))

  const answer = await admin('/machines.csv?q=label:lab')
  assert.match(answer.headers.get('content-disposition') ?? '', /machines\.csv/)
  const bytes = new Uint8Array(await answer.arrayBuffer())
  assert.equal([...bytes.subarray(0, 3)], [0xef, 0xbb, 0xbf], 'a byte order mark')
  const table = new TextDecoder().decode(bytes)
  const [head, row, ...rest] = table.split('\r\n')
  assert.is(head, 'mac,name,labels,rack,slot,serial,image,disk,mode,state')
  assert.match(row ?? '', /^52:54:00:a1:00:01,"'=HYPERLINK\(""x""\)",lab,1,4,SN-1,,,/)
  assert.equal(rest, [''])
  const whole = await (await admin('/machines.csv')).text()
  const unchanged = await preview(admin, whole)
  assert.match(unchanged.text, /3 lines change nothing\./)
  assert.match(unchanged.text, /are ignored: serial, image, disk, mode, state/)
  assert.is(unchanged.digest, null)

  const file = [
    '\ufeffName;MAC;Rack;mode',
    `eins;${ONE};7;flasher-flash-once`,
    `zwei;${TWO};7;`,
    `${'x'.repeat(65)};${THREE};;`,
    'nobody;52:54:00:00:00:99;;',
  ].join('\r\n')
  const shown = await preview(admin, file, 'text')
  assert.match(
    shown.text,
    /2 lines will change machines\. 1 line is refused\. 1 line names an unknown machine/,
  )
  assert.match(shown.text, /Line 2 52:54:00:a1:00:01 Name: =HYPERLINK\(&quot;x&quot;\) → eins/)
  assert.match(shown.text, /Labels: lab, rack-1, slot-4 → lab, rack-7, slot-4/)
  assert.match(shown.text, /A name has at most 64 characters, not 65\./)
  assert.equal((await identityOf(admin, TWO)).name, 'two')

  // Somebody else changes one of them meanwhile; that stays, and the other is written.
  await put(TWO, 'changed', [])
  const done = await apply(admin, shown.digest)
  assert.match(done.text, /1 machine was changed\./)
  assert.match(done.text, /52:54:00:a1:00:02 Its name or labels were changed in the meantime/)
  assert.equal(await identityOf(admin, ONE), { name: 'eins', labels: ['lab', 'rack-7', 'slot-4'] })
  assert.equal(await identityOf(admin, TWO), { name: 'changed', labels: [] })
  const one = await readJson(admin(`/machines/${ONE}`))
  assert.is(one.boot_mode, 'ipxe-exit')
  assert.equal(await apply(admin, shown.digest), done, 'a second click shows what the first did')

  const { batches } = await readJson(admin('/batches'))
  assert.equal(
    batches.map(({ action }: { action: string }) => action),
    ['name'],
  )
  const events = await (await admin('/events.csv?kind=batch.ordered')).text()
  assert.match(events, /1 machine, 1 skipped/)
  const undone = await readJson(admin(`/batches/${batches[0].id}/undo`, { method: 'POST' }))
  assert.is(undone.done, 1)
  assert.is((await identityOf(admin, ONE)).name, '=HYPERLINK("x")')
  assert.match((await apply(admin, shown.digest)).text, /This preview has expired/)
})

test('whoever has a scope sees and changes only what is in it, and no label that is a scope', async () => {
  await using server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  await hideCanaries(server)
  const anna = await addPerson(server, 'anna', 'operate', ['lab'])
  const lea = await addPerson(server, 'lea', 'look')
  const admin = await server.operator()
  assert.is((await lea('/ui/machines/file')).status, 403)
  assert.is((await lea('/ui/machines/file', await upload('mac,name\n'))).status, 403)
  assert.not.match(await (await lea('/ui/machines')).text(), /Import CSV/)
  assert.match(await (await anna('/ui/machines')).text(), /Import CSV/)
  assert.not.match(await (await anna('/machines.csv')).text(), CANARY)

  const outside = await identityOf(admin, OUTSIDE)
  const shown = await preview(
    anna,
    `mac,name,labels\n${INSIDE},hers,lab\n${OUTSIDE},hers,lab\n52:54:00:00:00:98,hers,lab`,
  )
  assert.match(shown.text, /1 line will change a machine\. 2 lines name unknown machines/)
  const stolen = await preview(anna, `mac,labels\n${INSIDE},other`)
  assert.match(stolen.text, /The label lab is the scope of people/)
  assert.is(stolen.digest, null)
  // What somebody was shown is applied by nobody else.
  assert.match((await apply(admin, shown.digest)).text, /This preview has expired/)
  assert.match((await apply(anna, shown.digest)).text, /1 machine was changed\./)
  assert.is((await identityOf(admin, INSIDE)).name, 'hers')
  assert.equal(await identityOf(admin, OUTSIDE), outside)
})

test('too much is refused before it is read, and ten megabytes are bounded', async () => {
  await using server = await createCurrentServer()
  const admin = await server.operator()
  const big = await admin('/ui/machines/file', await upload('x'.repeat(10 * 1024 * 1024)))
  assert.is(big.status, 413)
  const most = 10 * 1024 * 1024 - 1000
  for (const [text, refusal] of [
    [`mac,name\n${'"'.repeat(most)}`.slice(0, most), /more than 10000 characters/],
    [`mac${',x'.repeat(1_000_000)}`, /more than 100 columns/],
    ['mac,name\n'.repeat(1_000_000), /more than 20000 lines/],
    ['mac,name\na\0b,c', /Line 2 holds bytes that are not text/],
    ['', /Choose a file, or paste a table/],
    ['name\nx', /must name the column &quot;mac&quot;/],
  ] as const) {
    assert.match((await preview(admin, text)).text, refusal)
  }
  const many = Array.from(
    { length: 500 },
    (_, at) => `${ONE.slice(0, -5)}${at % 10}0:0${at % 10},x`,
  )
  const shown = await preview(admin, ['mac,name', ...many].join('\n'))
  assert.match(shown.text, /500 lines name machines that are in the file twice/)
  assert.match(shown.text, /and 400 more/)
})

const search = (name: string, q = 'state:failed'): SavedSearch => ({ name, q, sort: '' })

function add(searches: readonly SavedSearch[], given: SavedSearch): readonly SavedSearch[] {
  const added = addSaved(searches, given)
  if (!added.ok) throw new Error(added.refusal)
  return added.value
}

function refusalOf(searches: readonly SavedSearch[], given: SavedSearch): string | null {
  const added = addSaved(searches, given)
  return added.ok ? null : added.refusal
}

test('a search comes back from its cookie as it was saved', () => {
  const saved = add(add([], search('失敗 "1"', 'image:debian* "a b"')), search('b'))
  assert.match(renderSaved(saved), /^[\w-]+$/)
  assert.equal(parseSaved(renderSaved(saved)), saved)
})

test('the same name replaces; no name, no search, too long and too many are refused', () => {
  assert.equal(add([search('a')], search(' a ', 'mode:tui')), [search('a', 'mode:tui')])
  assert.is(refusalOf([], search(' ')), 'no-name')
  assert.is(refusalOf([], search('a', ' ')), 'no-search')
  assert.is(refusalOf([], search('a'.repeat(41))), 'too-long')
  assert.is(refusalOf([], search('a', 'q'.repeat(301))), 'too-long')
  const full = Array.from({ length: 12 }, (_, at) => search(`n${at}`))
  assert.is(refusalOf(full, search('one more')), 'too-many')
  const long = Array.from({ length: 3 }, (_, at) => search(`n${at}`, '試'.repeat(280)))
  assert.is(refusalOf(long, search('one more', '試'.repeat(280))), 'too-many')
})

test('any cookie is read without harm, and what it holds stays within the limits', () => {
  const parts = fc.array(fc.tuple(fc.string(), fc.string(), fc.string()))
  const cookies = fc.oneof(
    fc.string(),
    parts.map((each) => Buffer.from(JSON.stringify(each)).toString('base64url')),
  )
  fc.assert(
    fc.property(cookies, (cookie) => {
      const saved = parseSaved(cookie)
      assert.ok(saved.length <= 12)
      for (const { name, q } of saved) assert.ok(name !== '' && q !== '' && q.length <= 300)
    }),
  )
  assert.equal(parseSaved(null), [])
  assert.equal(parseSaved('A'.repeat(5000)), [])
})

test('columns are those that exist, in the order of the table, with the name among them', () => {
  assert.is(renderColumns(parseColumns('seen.state.nothing.state')), 'state.name.seen')
  assert.is(renderColumns(parseColumns('x')), 'name')
  assert.is(renderColumns(parseColumns(null)), 'state.name.next.image.disk.seen')
  assert.is(renderColumns(parseColumns('')), 'state.name.next.image.disk.seen')
  assert.ok(isUsual(parseColumns('seen.disk.image.next.state')))
  assert.not(isUsual(parseColumns('state')))
  assert.is(renderColumns(parseColumns('__proto__.constructor')), 'name')
})

test.run()
