/** The configuration of nginx on the server and on a machine of a chain. */

const around = (folder: string, body: string) => `daemon off;
master_process off;
user root;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  sendfile on;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  ${body}
}
`

/** Serves the files of a folder. */
export const renderServer = (folder: string, files: string): string =>
  around(folder, `server { listen 8080; root ${files}; }`)

interface ChainLink {
  readonly folder: string
  /** Who is asked first, then those that are asked where it is away; the server is the last one. */
  readonly before: readonly [string, ...string[]]
  /** The pieces that a machine keeps for those behind it, in MiB. */
  readonly windowMib: number
  readonly pieceMib: number
  /** How long the first piece may take through all machines before it, in seconds. */
  readonly patience: number
}

/** Hands on the pieces that it read itself. */
export function renderMachine({
  folder,
  before,
  windowMib,
  pieceMib,
  patience,
}: ChainLink): string {
  const [first, ...others] = before
  const backups = others.map((each) => `server ${each}:8080 backup max_fails=1 fail_timeout=60s;`)
  return around(
    folder,
    `proxy_cache_path ${folder}/window keys_zone=window:1m max_size=${windowMib}m
      inactive=10m use_temp_path=off manager_sleep=100ms;
  upstream before {
    server ${first}:8080 max_fails=1 fail_timeout=60s;
    ${backups.join('\n    ')}
    keepalive 4;
  }
  server {
    listen 8080;
    location / {
      slice ${pieceMib}m;
      proxy_pass http://before;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Range $slice_range;
      proxy_cache window;
      proxy_cache_key $uri$slice_range;
      proxy_cache_valid 206 1h;
      proxy_cache_lock on;
      proxy_cache_lock_age ${patience}s;
      proxy_cache_lock_timeout ${patience * 2}s;
      proxy_connect_timeout 1s;
      proxy_read_timeout ${patience}s;
      proxy_next_upstream error timeout http_502 http_504;
    }
  }`,
  )
}
