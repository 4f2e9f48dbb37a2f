/** Controls the power of the machines that somebody with a scope sees, and of no other. */
import { refuse } from '#kit/foundation/result.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { lasting } from '#fleet/power/rules/power.ts'
import type { PowerControl } from './power-control.ts'
import type { PowerBody } from './rules/power-request.ts'

const SHARED = 'Its outlet also powers machines that you may not change. Ask an administrator.'

/** A machine whose outlet feeds unseen ones keeps its power; reading is allowed. */
export function scopePower(control: PowerControl, canSee: (mac: string) => boolean): PowerControl {
  const { book } = control
  const refuseOutside = (mac: Mac): string | null => {
    if (!canSee(mac)) return `no power control is set up for ${mac}`
    return book.listSharing(mac).every(canSee) ? null : SHARED
  }
  const refuseHere = (mac: Mac, { action }: Pick<PowerBody, 'action'>): string | null =>
    action === 'read' && canSee(mac) ? null : refuseOutside(mac)
  const listOwn = (macs: readonly Mac[]) => macs.filter((mac) => refuseOutside(mac) === null)
  return {
    ...control,
    book: {
      ...book,
      find: (mac) => (canSee(mac) ? book.find(mac) : null),
      listSharing: (mac) => book.listSharing(mac).filter(canSee),
    },
    refuseOutside,
    refuse: (mac, asked) => refuseHere(mac, asked) ?? control.refuse(mac, asked),
    refuseBoot: async (mac, isRestart, by) =>
      refuseOutside(mac) ?? (await control.refuseBoot(mac, isRestart, by)),
    boot: async (mac, isRestart, by) =>
      refuseOutside(mac) ?? (await control.boot(mac, isRestart, by)),
    foresee: (mac, isRestart) => refuseOutside(mac) ?? control.foresee(mac, isRestart),
    async act(mac, asked, by) {
      const refusal = refuseHere(mac, asked)
      return refusal === null
        ? await control.act(mac, asked, by)
        : refuse({
            asked: asked.action,
            state: 'unknown',
            ...lasting('not-now', 'it is not done', refusal),
          })
    },
    // A machine may leave the scope before its turn; it is left alone.
    actOnEach: (macs, asked, each) =>
      control.actOnEach(listOwn(macs), asked, { ...each, forbid: refuseOutside }),
    bootEach: (macs, request) =>
      control.bootEach(listOwn(macs), { ...request, forbid: refuseOutside }),
    listUnderway: () => control.listUnderway().filter(({ macs }) => macs.every(canSee)),
    listWriting: (mac) => control.listWriting(mac).filter(canSee),
    view(mac) {
      const view = canSee(mac) ? control.view(mac) : null
      return view && { ...view, shares_outlet_with: view.shares_outlet_with.filter(canSee) }
    },
  }
}
