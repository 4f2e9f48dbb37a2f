import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { selectImages } from '#cache/rules/image-list.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { makeFolder, PASSWORD, serveCache } from '#test/support/server/image-cache.ts'

const test = suite('cache: the list of images')

const imageOf = (name: string, size_bytes: number, machines: number | null) => ({
  entry: {
    name,
    src: `https://images.invalid/${name}`,
    format: 'img.zst',
    arch: 'x86_64',
    sha256: null,
    size_bytes,
    description: null,
  },
  state: machines === null ? 'failed' : 'ready',
  addedAt: null,
  machines,
})

test('images are found by words and state, and sorted by columns; 2.4.2 comes before 2.4.10', () => {
  const rows = [imageOf('edge-2.4.10', 5, 1), imageOf('edge-2.4.2', 9, null), imageOf('lab', 7, 3)]
  const names = (query: Parameters<typeof selectImages>[1]) =>
    selectImages(rows, query).map(({ entry }) => entry.name)
  assert.equal(names({}), ['edge-2.4.10', 'edge-2.4.2', 'lab'])
  assert.equal(names({ q: 'EDGE x86' }), ['edge-2.4.10', 'edge-2.4.2'])
  assert.equal(names({ q: 'edge arm64' }), [])
  assert.equal(names({ state: 'failed' }), ['edge-2.4.2'])
  assert.equal(names({ sort: 'name' }), ['edge-2.4.2', 'edge-2.4.10', 'lab'])
  assert.equal(names({ sort: '-size' }), ['edge-2.4.2', 'lab', 'edge-2.4.10'])
  assert.equal(names({ sort: '-uses' }), ['lab', 'edge-2.4.10', 'edge-2.4.2'])
  assert.equal(names({ sort: 'constructor' }), names({}))
})

test('the page has the search, the states with their counts and columns that sort', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const { cookie } = await login(served.base, PASSWORD)
  const read = async (path: string) =>
    await (await fetch(`${served.base}${path}`, { headers: { cookie } })).text()
  assert.not.match(await read('/ui/dashboard'), 'Search images')
  for (const name of ['edge-1', 'lab-1']) {
    const added = await fetch(`${served.base}/ui/add`, {
      method: 'POST',
      headers: { cookie },
      body: new URLSearchParams({ src: `http://127.0.0.1:1/${name}.img`, name: `${name}.img` }),
      redirect: 'manual',
    })
    assert.is(added.status, 303)
  }
  const page = await read('/ui/dashboard?q=edge&sort=name')
  assert.match(page, 'Search images')
  assert.match(page, '<bdi class="image-name">edge-1.img</bdi>')
  assert.not.match(page, '<bdi class="image-name">lab-1.img</bdi>')
  assert.match(page, 'href="/ui/dashboard?q=edge&amp;sort=-name"')
  assert.match(page, 'aria-sort="ascending"')
  assert.match(await read('/ui/dashboard?q=%3Cb%3Enothing'), 'No matching images')
})

test.run()
