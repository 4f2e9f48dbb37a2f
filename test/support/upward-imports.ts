/** What the plan of the house does not allow and is still there: each list may only become shorter. */

/** Imports that point up the stack. */
export const UPWARD_IMPORTS: readonly string[] = [
  'runtime/cache/captures/capture-page-routes.ts -> runtime/server/texts/texts.ts',
  'runtime/cache/captures/capture-view.ts -> runtime/server/texts/texts.ts',
  'runtime/cache/pages/images.ts -> runtime/server/texts/texts.ts',
  'runtime/cache/pages/layout.ts -> runtime/server/texts/texts.ts',
  'runtime/cache/routes/pages.ts -> runtime/server/texts/texts.ts',
  'runtime/fleet/boot/rules/dhcp.ts -> runtime/server/texts/texts.ts',
  'runtime/fleet/boot/rules/readiness.ts -> runtime/server/texts/texts.ts',
  'runtime/kit/web/access/login.ts -> runtime/server/texts/texts.ts',
  'runtime/kit/web/answers/caller.ts -> runtime/fleet/state/journal.ts',
  'runtime/kit/web/ui/api-page.ts -> runtime/server/texts/texts.ts',
  'runtime/kit/web/ui/elements.ts -> runtime/server/texts/texts.ts',
  'runtime/kit/web/ui/layout.ts -> runtime/server/texts/texts.ts',
  'runtime/kit/web/ui/site-views.ts -> runtime/server/texts/texts.ts',
  'runtime/kit/web/ui/tables.ts -> runtime/server/texts/texts.ts',
  'runtime/kit/web/ui/theme.ts -> runtime/server/texts/texts.ts',
  'runtime/kit/web/ui/upload-form.ts -> runtime/server/texts/texts.ts',
  'runtime/server/current/assembly/pins.ts -> runtime/cache/store/data-folder.ts',
]

/** Rooms that need each other. */
export const MUTUAL_ROOMS: readonly (readonly string[])[] = []
