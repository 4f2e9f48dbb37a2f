/** What was typed under a session that ended: sealed, for one person, shown in its form again. */
import { H3Event } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createTypedForms } from '#kit/web/access/typed-forms.ts'
import { fillPage, renderTyped } from '#kit/web/ui/typed-page.ts'
import type { CallerPerson } from '#kit/web/answers/caller.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'

const test = suite('what was typed')
const HOST = 'http://flasher.test:8080'
const DAY = 24 * 3_600_000
const ANNA: CallerPerson = { id: 'p1', name: 'anna', role: 'operate', labels: null }
const BEA: CallerPerson = { ...ANNA, id: 'p2', name: 'bea' }

function createForms() {
  let time = 1_800_000_000_000
  const secret = {
    sign: (text: string) => Buffer.from(`key ${text}`).toString('base64url'),
    verify: (text: string, given: string) => secret.sign(text) === given,
  }
  const forms = createTypedForms({ secret, now: () => new Date(time) })
  return { forms, pass: (ms: number) => void (time += ms) }
}

function post(path: string, headers: Readonly<Record<string, string>> = {}) {
  const event = new H3Event(new Request(HOST + path, { method: 'POST', headers }))
  const [baseUrl, host] = [HOST, new URL(HOST).host]
  event.context.peer = { ip: null, isSecure: false, baseUrl, host, ownHosts: ['proxy.test'] }
  return event
}

test('one person gets it back within a day; nobody else does, nor what was changed on the way', () => {
  const { forms, pass } = createForms()
  const form = new URLSearchParams({
    name: 'a',
    bmc_password: 'xyz',
    'pxe.tokens': 'require',
    current: 'xyz',
    'backup.driver_options': 'xyz',
    labels: 'one',
  })
  const event = post('/ui/machines/x?y=1', { referer: `${HOST}/ui/machines/x` })
  const sealed = forms.seal(event, 'p1', form)
  assert.not.match(Buffer.from(sealed, 'base64url').toString('latin1'), /xyz|labels|anna/)
  const typed = forms.open(sealed, ANNA)
  assert.equal(typed?.fields, [
    ['name', 'a'],
    ['pxe.tokens', 'require'],
    ['labels', 'one'],
  ])
  assert.equal(
    [typed?.action, typed?.page, typed?.lost],
    ['/ui/machines/x?y=1', '/ui/machines/x', ['bmc_password', 'current', 'backup.driver_options']],
  )
  for (const other of [BEA, null]) assert.is(forms.open(sealed, other), null)
  for (const at of [0, 20, 60]) {
    const bytes = Buffer.from(sealed, 'base64url')
    bytes[at] = (bytes[at] ?? 0) ^ 1
    assert.is(forms.open(bytes.toString('base64url'), ANNA), null)
  }
  for (const wrong of ['', 'x', 'A'.repeat(100_000)]) assert.is(forms.open(wrong, ANNA), null)
  pass(DAY + 1000)
  assert.is(forms.open(sealed, ANNA), null)
})

test('a browser is known by the person who was logged in last, and by nothing that it could make up', () => {
  const { forms } = createForms()
  const [cookie = ''] = forms.remember(ANNA, true).split(';')
  assert.match(
    forms.remember(null, true),
    /; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
  )
  assert.is(forms.recall(post('/ui', { cookie: `a=b; ${cookie}` })), 'p1')
  for (const wrong of [
    '',
    cookie.replace('.', 'x.'),
    `${cookie}x`,
    `${cookie.split('=')[0]}=-`,
    `${cookie.split('=')[0]}=`,
  ]) {
    assert.is(forms.recall(post('/ui', { cookie: wrong })), null)
  }
})

test('another site is no page to return to', () => {
  const { forms } = createForms()
  for (const referer of [
    'http://other.test/ui/x',
    'nonsense',
    `${HOST}/images`,
    `${HOST}/ui/login?next=/`,
  ]) {
    const sealed = forms.seal(post('/ui/x', { referer }), 'p1', new URLSearchParams())
    assert.is(forms.open(sealed, ANNA)?.page, null, referer)
  }
})

const PAGE = `<!doctype html><html><body><form method="post" action="/ui/other"><input name="a"></form>
<form method="post" action="/ui/x"><input type="hidden" name="confirm" value="ask"></form>
<form method="post" action="/ui/x"><input type="hidden" name="choice" value="on"></form>
<details><form method="post" action="/ui/x" id="f"><input type="hidden" name="was" value="9"><input type="hidden" name="choice" value="off"><input name="a" value="old">
<input type="password" name="p"><input type="file" name="up"><input type="checkbox" name="c" checked>
<input type="checkbox" name="d" value="1"><input type="checkbox" name="d" value="2" checked>
<input type="radio" name="r" value="x" checked><input type="radio" name="r" value="y">
<select name="gone"><option>first</option><option selected>second</option></select><input type="checkbox" name="off" checked disabled>
<select name="s"><option selected>one<option value="2">two</select><textarea name="t">
stored</textarea></form></details><textarea name="late" form="f"></textarea></body></html>`

test('each kind of field is filled in as it was typed, also with what looks like HTML', () => {
  const fields: [string, string][] = [
    ['was', '7'],
    ['choice', 'off'],
    ['confirm', 'yes'],
    ['a', '"><script>x</script>'],
    ['d', '1'],
    ['r', 'y'],
    ['s', '2'],
    ['gone', 'third'],
    ['t', '\r\n</textarea><b>&amp;'],
    ['late', 'of the form, too'],
    ['added', 'by a script'],
    ['p', 'hidden-word'],
  ]
  const typed = { at: 0, who: 'p1', action: '/ui/x', page: '/ui/x', fields, lost: ['secrets'] }
  const filled = fillPage(PAGE, typed) ?? ''
  for (const part of [
    '<form method="post" action="/ui/other"><input name="a"></form>',
    '<input type="hidden" name="confirm" value="ask">',
    '<input type="hidden" name="choice" value="on">',
    '<input type="hidden" name="was" value="7"><input type="hidden" name="choice" value="off">',
    '<details open="">',
    'name="a" value="&quot;><script>x</script>"',
    '<input type="password" name="p"><input type="file" name="up"><input type="checkbox" name="c">',
    '<input type="checkbox" name="d" value="1" checked=""><input type="checkbox" name="d" value="2">',
    '<input type="radio" name="r" value="x"><input type="radio" name="r" value="y" checked="">',
    '<option>one</option><option value="2" selected="">two</option>',
    '<textarea name="t">\n\n&lt;/textarea&gt;&lt;b&gt;&amp;amp;</textarea>',
    '<textarea name="late" form="f">of the form, too</textarea>',
    'Type these again: secrets, p.',
    '<pre>by a script</pre>',
    '<pre>third</pre>',
    '<option>first</option><option selected="">second</option>',
    'name="off" checked="" disabled="">',
    'id="f" data-dirty=""',
  ]) {
    assert.ok(filled.includes(part), `${part}\n${filled}`)
  }
  assert.not.match(filled, 'hidden-word')
  assert.not.match(filled, '>yes<')
  // The answer to a question is given again, and a form that does something else is not filled in.
  for (const choice of ['on ', 'ask']) {
    const other = fields.map(([name, value]): [string, string] => [
      name,
      name === 'choice' ? choice : value,
    ])
    assert.is(fillPage(PAGE, { ...typed, fields: other }), null)
  }
  assert.is(fillPage(PAGE, { ...typed, action: '/ui/gone' }), null)
  assert.match(String(renderTyped(typed)), '<pre>of the form, too</pre>')
})

test('the answer to a question comes back in the form that leads to it, which asks again', () => {
  const page = `<form method="post" action="/ui/x"><input type="hidden" name="confirm" value="ask">
<input type="hidden" name="of" value="1"><input name="a" value="old"></form>`
  const typed = { at: 0, who: 'p1', action: '/ui/x', page: '/ui/x', lost: [] }
  const fill = (...fields: [string, string][]) => fillPage(page, { ...typed, fields })
  const filled = fill(['of', '1'], ['a', 'new'], ['confirm', '1234']) ?? ''
  assert.ok(filled.includes('name="confirm" value="ask"') && filled.includes('value="new"'), filled)
  assert.not.match(filled, '1234')
  assert.is(fill(['of', '2'], ['a', 'new'], ['confirm', '1234']), null)
  assert.is(fill(['of', '1'], ['confirm', 'yes']), null)
})

test('on the earlier line a login after an ended session shows the form, and sends nothing', async () => {
  await using server = await createEarlierServer()
  const logIn = await server.request('/ui/login', {
    method: 'POST',
    body: new URLSearchParams({ password: PASSWORD }),
  })
  const cookies = logIn.headers.getSetCookie().map((line) => line.split(';')[0] ?? '')
  const who = cookies.find((pair) => pair.startsWith('flasher-who-')) ?? ''
  const body = new URLSearchParams({ mac: '52:54:00:00:00:09', image: 'x.img' })
  const send = (cookie: string) =>
    server.request('/ui/machines', {
      method: 'POST',
      body,
      headers: { cookie, referer: 'http://flasher.test:8080/ui/machines' },
    })
  assert.is((await send('')).status, 303)
  const away = await send(who)
  assert.is(away.status, 401)
  const page = await away.text()
  assert.match(page, 'You were logged out')
  const ended = /name="ended" value="([\w-]+)"/.exec(page)?.[1] ?? ''
  const again = await server.request('/ui/login', {
    method: 'POST',
    body: new URLSearchParams({ password: PASSWORD, ended, next: '/ui/machines' }),
  })
  assert.is(again.status, 200)
  assert.match(await again.text(), /52:54:00:00:00:09/)
  const refused = await server.request('/ui/login', {
    method: 'POST',
    body: new URLSearchParams({ password: 'wrong', ended }),
  })
  assert.match(await refused.text(), `value="${ended}"`)
})

test.run()
