/** `/m/{mac}`: the short way to a machine's page, for the code that a phone reads off its screen. */
import { getRouterParam } from 'h3'
import { parseMac } from '#kit/net/rules/mac.ts'
import { seeOther } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'

/** A code of capitals is smaller. */
const PATHS = ['/m/:mac', '/M/:mac']

/** Says nothing of the machine: the page asks for a login first. */
export const shortLinkRoutes = (): readonly Route[] =>
  PATHS.map((path) => ({
    method: 'GET',
    path,
    access: 'open',
    handle(event) {
      const given = getRouterParam(event, 'mac', { decode: true }) ?? ''
      const mac = parseMac(
        given.replace(/^(?:[0-9a-f]{2}){6}$/i, (digits) => digits.match(/../g)?.join(':') ?? ''),
      )
      if (!mac.ok) throw refuse(404, 'this is not the address of a machine')
      return seeOther(machinePath(mac.value))
    },
  }))
