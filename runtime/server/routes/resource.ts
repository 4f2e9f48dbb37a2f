/** What people keep by name (channels, first-boot templates): changes with an event each, and its routes in the API. */
import { getRouterParam, type H3Event } from 'h3'
import type * as z from 'zod'
import type { NamedRows } from '#fleet/state/kept-rows.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import type { FieldError } from '#kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { json, nothing } from '#kit/web/answers/answers.ts'
import type { By, PlainEvent } from '#kit/web/answers/caller.ts'
import { checked, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse as refuseRequest, refuseFields } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { meetsConditions } from '#kit/web/answers/rules/content-coding.ts'
import type { Scope } from '#kit/web/answers/rules/rights.ts'
import type { Site } from './site.ts'

interface Named {
  readonly name: string
}

interface Resource<Item extends Named, Fields> {
  readonly path: `/${string}`
  /** `channel`, as refusals call one. */
  readonly word: string
  readonly rows: NamedRows<Item>
  readonly most: number
  readonly schemas: {
    readonly name: z.ZodType<string>
    readonly fields: z.ZodType<Fields>
    readonly wire: z.ZodType
  }
  readonly summaries: Readonly<Record<'list' | 'one' | 'save' | 'remove', string>>
  /** What it takes to change one; everybody reads. */
  readonly scope: Scope
  /** Of the list, and of each one. */
  readonly reach: readonly [list: Route['reach'], one?: Route['reach']]
  toWire(item: Item): object
  /** Of what is stored; absent: `If-Match` holds for `*` alone. */
  tagOf?(item: Item): string
  /** `before` null: it is new. */
  edit(before: Item | null, fields: Fields & Named, by: Pick<By, 'actor'> & { at: string }): Item
  /** What is wrong beside the shape of the fields. */
  check?(fields: Fields & Named): MaybePromise<FieldError | null>
  /** Why it cannot be removed. */
  findObstacle(item: Item): string | null
  /** Why a condition did not hold. */
  describeStale(name: string): string
  describe(before: Item | null, after: Item | null): PlainEvent
}

type Refusal = 'stays' | 'too-many' | FieldError
type IsMeant<Item> = (before: Item | null) => boolean

export function createResource<Item extends Named, Fields>(
  site: Pick<Site, 'by' | 'now' | 'recordAll' | 'changes'>,
  of: Resource<Item, Fields>,
) {
  async function record(before: Item | null, after: Item | null, by: By): Promise<void> {
    // Such as the report of images in use to the cache.
    site.changes.announce({ topic: 'settings' })
    const event: PlainEvent = { subject_kind: 'settings', ...of.describe(before, after) }
    await site.recordAll([event], { subject_id: (after ?? before)?.name ?? null, ...by })
  }

  const edits = {
    /** `isMeant` sees what is stored, in the transaction. */
    async save(
      fields: Fields & Named,
      by: By,
      isMeant: IsMeant<Item> = () => true,
    ): Promise<Result<Item, Refusal>> {
      const wrong = (await of.check?.(fields)) ?? null
      if (wrong !== null) return refuse(wrong)
      const made = { actor: by.actor, at: site.now().toISOString() }
      const saved = await of.rows.save(fields.name, (before) =>
        isMeant(before) ? of.edit(before, fields, made) : null,
      )
      if (!saved.ok) return saved
      await record(saved.value.before, saved.value.after, by)
      return accept(saved.value.after)
    },
    /** False: there is none, or it is not what was meant. */
    async remove(name: string, by: By, isMeant: IsMeant<Item> = () => true): Promise<boolean> {
      const before = await of.rows.remove(name, isMeant)
      if (before !== null) await record(before, null, by)
      return before !== null
    },
  }
  return { ...edits, routes: () => listRoutes(site, of, edits) }
}

function listRoutes<Item extends Named, Fields>(
  { by }: Pick<Site, 'by'>,
  of: Resource<Item, Fields>,
  { save, remove }: Pick<ReturnType<typeof createResource<Item, Fields>>, 'save' | 'remove'>,
): readonly Route[] {
  const { path: all, word, rows, schemas, scope: access, summaries } = of
  const path = `${all}/:name`
  const [reachOfList, reach] = of.reach.map((each) => (each === undefined ? {} : { reach: each }))
  const wire = renderSchema(schemas.wire, 'output')
  const conditions = of.tagOf === undefined ? [] : [412]
  const find = (event: H3Event): Item => {
    const item = rows.find(readName(event))
    if (item === null) throw refuseRequest(404, `no such ${word}`)
    return item
  }
  const show = (item: Item) =>
    json(of.toWire(item), 200, of.tagOf === undefined ? {} : { etag: of.tagOf(item) })
  const expects = (event: H3Event) => (item: Item | null) =>
    meetsConditions(event.req.headers, item === null ? null : (of.tagOf?.(item) ?? '""'))
  const asFault = (refusal: Refusal, name: string) =>
    refusal === 'stays'
      ? refuseRequest(412, of.describeStale(name))
      : refusal === 'too-many'
        ? refuseRequest(409, `there are ${of.most} ${word.replace(/.* /, '')}s already`)
        : refuseFields([refusal])
  return [
    {
      method: 'GET',
      path: all,
      access: 'read',
      ...reachOfList,
      doc: { summary: summaries.list, answers: { 200: { type: 'array', items: wire } } },
      handle: () => json(rows.list().map(of.toWire)),
    },
    {
      method: 'GET',
      path,
      access: 'read',
      ...reach,
      doc: { summary: summaries.one, answers: { 200: wire } },
      handle: (event) => show(find(event)),
    },
    {
      method: 'PUT',
      path,
      access,
      ...reach,
      takes: 'json',
      doc: {
        summary: summaries.save,
        body: renderSchema(schemas.fields, 'input'),
        answers: { 200: wire },
        refuses: [409, 412],
        isNeverMissing: true,
      },
      async handle(event, body) {
        const name = checked(schemas.name, readName(event), 'query')
        const fields = { ...checked(schemas.fields, body), name }
        const saved = await save(fields, by(event), expects(event))
        if (!saved.ok) throw asFault(saved.refusal, name)
        return show(saved.value)
      },
    },
    {
      method: 'DELETE',
      path,
      access,
      ...reach,
      doc: {
        summary: summaries.remove,
        answers: { 204: null },
        refuses: [409, ...conditions],
      },
      async handle(event) {
        const item = find(event)
        const obstacle = of.findObstacle(item)
        if (obstacle !== null) throw refuseRequest(409, obstacle)
        const isGone = await remove(
          item.name,
          by(event),
          conditions.length > 0 ? expects(event) : undefined,
        )
        if (!isGone && conditions.length > 0) throw refuseRequest(412, of.describeStale(item.name))
        return nothing()
      },
    },
  ]
}

const readName = (event: H3Event): string => getRouterParam(event, 'name', { decode: true }) ?? ''
