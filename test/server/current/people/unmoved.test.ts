/** What somebody with a scope gets is the same, to the last number, whether there are machines outside of it or not. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addPerson,
  createCurrentServer,
  type CurrentServer,
} from '#test/support/people/current-server.ts'
import { addInside, addOutside, INSIDE, readSome } from '#test/support/people/canaries.ts'
import { runIdOf } from '#test/support/server/runs.ts'

const test = suite('machines outside move nothing')

/** Queries that lists take; others make nothing of them. */
const QUERIES = [
  '',
  '?q=name',
  '?q=state:failed&state=failed&sort=-name',
  '?folded=1&bars=all',
  '?list=1&q=flash',
  '?limit=1',
]

async function openScene(withOutside: boolean) {
  const server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  const anna = await addPerson(server, 'anna', 'operate', ['lab'])
  const inside = await addInside(server)
  if (withOutside) await addOutside(server)
  const operator = await server.operator()
  return { server, anna, operator, inside, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

type Scene = Awaited<ReturnType<typeof openScene>>

const fill = (path: string, { inside }: Scene) =>
  path
    .replace(':id', path.includes('/batches/') ? inside : runIdOf(1))
    .replace(/:(?!mac)\w+/g, 'x')
    .replace(':mac', INSIDE)

const isAsked = ({ access, method }: CurrentServer['routes'][number]) =>
  access !== 'open' && method === 'GET'

/** Without what differs between two servers anyway: times, and names that are made at random. */
const settle = (text: string) =>
  text
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d(%3A|:)\d\d(\1\d\d(\.\d+)?)?( ?UTC|Z)?/g, 'TIME')
    .replace(/(<time[^>]*>)[^<]*/g, '$1AGO')
    .replace(/[\d.]+ [KMGT]B free/g, 'SPACE free')
    .replace(/\/tmp\/flasher-web-\w+/g, 'FOLDER')
    .replace(/\b(?=[0-9a-z]*\d)[0-9a-z]{12,}\b/gi, 'ID')

type Who = 'anna' | 'operator'

async function answerOf(scene: Scene, who: Who, asked: string): Promise<string> {
  const answer = await scene[who](fill(asked, scene))
  return `${answer.status} ${settle(await readSome(answer))}`
}

/** What both differ in, with some text around it. */
function whereBoth(one: string, two: string): string {
  const at = [...one].findIndex((letter, index) => letter !== two[index])
  return [one, two].map((text) => text.slice(Math.max(0, at - 60), at + 60)).join(' | ')
}

test('no count, no order and no limit tells that they are there', async () => {
  await using alone = await openScene(false)
  await using beside = await openScene(true)
  const paths = alone.server.routes
    .filter(isAsked)
    .flatMap(({ path }) => QUERIES.map((query) => `${path}${query}`))
  async function listDiffering(who: Who): Promise<readonly string[]> {
    const differing: string[] = []
    for (const path of paths) {
      const [one, two] = [await answerOf(alone, who, path), await answerOf(beside, who, path)]
      if (one !== two) differing.push(`${path}: ${whereBoth(one, two)}`)
    }
    return differing
  }
  assert.equal(await listDiffering('anna'), [])
  const { length } = await listDiffering('operator')
  assert.ok(length > 50, `without a scope ${length} answers differ`)
})

test.run()
