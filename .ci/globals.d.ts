// What a browser gives a page; only the names are checked.
declare const document: any, window: any, location: any, history: any, navigator: any, crypto: any;
declare const localStorage: any, sessionStorage: any, performance: any, innerHeight: any, scrollX: any, scrollY: any;
declare const addEventListener: any, atob: any, btoa: any, clearInterval: any, clearTimeout: any, fetch: any;
declare const getComputedStyle: any, matchMedia: any, requestAnimationFrame: any, setInterval: any, setTimeout: any;
declare const Blob: any, DecompressionStream: any, DOMPoint: any, Event: any, FileReader: any, Image: any;
declare const ImageData: any, IntersectionObserver: any, MouseEvent: any, Node: any, ResizeObserver: any;
declare const Response: any, TextDecoder: any, URL: any, URLSearchParams: any, WebAssembly: any, Worker: any;
declare const XMLSerializer: any;
