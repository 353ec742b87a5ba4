// Caches the page's files, so that it works offline. The build fills in their names and their checksum.
const FIRST = [/*FIRST*/]
const REST = [/*REST*/]
const CACHE = 'planner-/*STAMP*/'

self.addEventListener('install', (event) => {
  const kept = caches.open(CACHE).then((cache) => cache.addAll(FIRST)).then(() => self.skipWaiting())
  event.waitUntil(kept)
})
self.addEventListener('activate', (event) => {
  const old = caches.keys().then((names) => Promise.all(names.filter((name) => name !== CACHE).map((name) => caches.delete(name))))
  event.waitUntil(old.then(() => self.clients.claim()))
})
// Files that the first load does not need are fetched once the page is idle and sends a message.
self.addEventListener('message', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(REST)))
})
self.addEventListener('fetch', (event) => {
  if (event.request.method !== 'GET' || new URL(event.request.url).origin !== location.origin) return
  event.respondWith(caches.match(event.request, { ignoreSearch: true, ignoreVary: true }).then((kept) => kept ?? fetch(event.request)))
})
